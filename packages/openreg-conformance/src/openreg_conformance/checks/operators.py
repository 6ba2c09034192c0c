# SPDX-License-Identifier: BSD-3-Clause
"""The checks of one operator in all call variants, on samples of the database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.testing._internal.common_utils import noncontiguous_like
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from .agreement import check_agreement, check_refusal
from .mirrors import is_strided, mirror, tensors, transform
from .tally import Call, Tally, attempt

# Operators that return uninitialized memory.
UNDEFINED_VALUES = ("empty", "new_empty", "resize_")

# Arguments that must be on the CPU for every device.
HOST_ARGUMENTS = {"tensor_split": (1,)}

# The CPU kernel writes only a part of a resized out= tensor for transposed arguments.
PARTLY_WRITTEN = ("native_batch_norm", "_native_batch_norm_legit")

# Elements that a device copies in about a millisecond.
BUSY = 1 << 20

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def arguments_of(sample: SampleInput) -> Arguments:
    """Returns the arguments of a sample, with its input first."""
    return (sample.input, *sample.args), dict(sample.kwargs)


def on(device: str, op: OpInfo, arguments: Arguments) -> Arguments:
    """Copies arguments to a device, except arguments that stay on the host."""
    args, kwargs = mirror(arguments, device)
    stay = HOST_ARGUMENTS.get(op.name, ())
    kept = (arguments[0][i] if i in stay else arg for i, arg in enumerate(args))
    return tuple(kept), kwargs


def has_values(op: OpInfo) -> bool:
    """Returns whether an operator's results are defined."""
    return not (op.has_nondeterministic_output or op.name.startswith(UNDEFINED_VALUES))


def check_call(
    tally: Tally,
    label: str,
    op: OpInfo,
    call: Callable[..., Any],
    arguments: Arguments,
    check: str = "forward",
    process: Callable[[Any], Any] = lambda result: result,
) -> None:
    """Compares a call of an operator with the same call on the CPU."""

    def run(device: str) -> tuple[Any, Any]:
        args, kwargs = on(device, op, arguments)
        result = call(*args, **kwargs)
        return result, (args[:1], kwargs) if op.name in HOST_ARGUMENTS else (
            args,
            kwargs,
        )

    partly = check == "out=" and op.name in PARTLY_WRITTEN
    values = has_values(op) and not (partly and label.endswith("permuted"))
    tally.call = Call("" if check == "forward" else check, op, arguments)
    check_agreement(tally, check, label, run, values=values, process=process)


def check_in_place(tally: Tally, label: str, op: OpInfo, arguments: Arguments) -> None:
    """Checks the in-place variant on copies of the input."""
    variant = op.inplace_variant
    if variant is None or not tally.wants("in-place"):
        return

    def call(first: Any, *args: Any, **kwargs: Any) -> Any:
        copy = (
            first.clone()
            if isinstance(first, Tensor)
            else [each.clone() for each in first]
        )
        result = variant(copy, *args, **kwargs)
        return copy if result is None else result

    check_call(tally, label, op, call, arguments, "in-place")


def keep_busy(device: torch.device) -> None:
    """Enqueues work that takes longer than the next call."""
    if device.type != "cpu":
        torch.zeros(BUSY, device=device).clone()


def check_out(tally: Tally, label: str, op: OpInfo, arguments: Arguments) -> None:
    """Checks the out= variant with fitting, non-contiguous and empty tensors.

    The device is kept busy, so a device that enqueues the call must determine the
    tensor's new metadata before the call runs.
    """

    @torch.no_grad()
    def call(*args: Any, **kwargs: Any) -> Any:
        for out in tensors(kwargs.get("out"))[:1]:
            keep_busy(out.device)
        return op(*args, **kwargs)

    if not tally.wants("out="):
        return
    args, kwargs = mirror(arguments, "cpu")
    expected = attempt(lambda: call(*args, **kwargs)).value
    outs = tensors(expected)
    if not outs or not all(is_strided(each) for each in outs):
        return
    kinds: dict[str, Callable[[Tensor], Tensor]] = {
        "": torch.ones_like,
        " with gaps": lambda each: noncontiguous_like(torch.ones_like(each)),
        " without size": lambda each: each.new_empty(0),
    }
    args, kwargs = arguments
    for kind, make in kinds.items():
        made = [make(each) for each in outs]
        out = made[0] if isinstance(expected, Tensor) else tuple(made)
        check_call(
            tally,
            f"out{kind}, {label}",
            op,
            call,
            (args, {**kwargs, "out": out}),
            "out=",
        )


def channels_last(values: Any) -> Any:
    """Converts images in nested values to channels last."""
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}

    def change(tensor: Tensor) -> Tensor:
        wanted = formats.get(tensor.dim(), torch.preserve_format)
        return tensor.clone(memory_format=wanted)

    return transform(values, change)


def variants(
    op: OpInfo, arguments: Arguments, dtype: torch.dtype
) -> Iterator[tuple[str, Arguments]]:
    """Yields the same arguments in other layouts."""
    yield " with gaps", transform(arguments, noncontiguous_like)
    if any(each.dim() in (4, 5) for each in tensors(arguments)):
        yield " channels last", channels_last(arguments)
    if dtype.is_complex and op.test_conjugated_samples:
        yield " conjugate view", transform(arguments, _conjugate_view)
    negative = dtype.is_complex or (dtype.is_floating_point and dtype.itemsize > 1)
    if op.test_neg_view and negative:  # the CPU cannot negate float8
        yield " negative view", transform(arguments, _negative_view)


def _conjugate_view(tensor: Tensor) -> Tensor:
    return tensor.conj().resolve_conj().conj() if tensor.is_complex() else tensor


def _negative_view(tensor: Tensor) -> Tensor:
    if not (tensor.is_complex() or tensor.is_floating_point()) or (
        tensor.dtype.itemsize == 1
    ):
        return tensor
    return torch._neg_view(torch.neg(tensor))


def check_sample(
    tally: Tally, label: str, op: OpInfo, dtype: torch.dtype, sample: SampleInput
) -> None:
    """Runs every check on a sample."""
    arguments = arguments_of(sample)
    process = sample.output_process_fn_grad
    direct = tally.wants("forward") or tally.wants("backward")
    if direct:
        check_call(tally, label, op, op, arguments, process=process)
    if not sample.broadcasts_input:
        check_in_place(tally, label, op, arguments)
    if not all(is_strided(each) for each in tensors(arguments)):
        return
    if op.supports_out and not op.name.startswith("_foreach"):
        check_out(tally, label, op, arguments)
    if not direct:
        return
    for name, changed in variants(op, arguments, dtype):
        check_call(tally, label + name, op, op, changed, process=process)


def check_errors(tally: Tally, op: OpInfo) -> None:
    """Compares the exception types for invalid inputs of an operator."""
    for i, error in enumerate(op.error_inputs("cpu")):
        arguments = arguments_of(error.sample_input)
        tally.call = Call("", op, arguments)

        def run(device: str, arguments: Arguments = arguments) -> Any:
            args, kwargs = on(device, op, arguments)
            return op(*args, **kwargs)

        check_refusal(tally, f"error {i}", run, values=has_values(op))
