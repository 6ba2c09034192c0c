# SPDX-License-Identifier: BSD-3-Clause
"""Compares FakeTensorMode's results of an operator with the real ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

from .agreement import leaves
from .comparison import describe
from .mirrors import is_strided, tensors, transform
from .operators import Arguments, arguments_of, on, variants
from .sweep import swept_dtype
from .tally import Attempt, Call, Tally, attempt

PROPERTIES = ("device", "dtype", "layout", "size", "stride", "storage offset")


@dataclasses.dataclass(frozen=True)
class Run:
    """The metadata of all tensors of a call, forward and backward."""

    forward: Attempt
    backward: Attempt | None = None


def looks(values: Any) -> list[dict[str, Any] | None]:
    """Returns the metadata of the tensors in nested values."""
    return [
        look(each) if isinstance(each, Tensor) else None
        for each in pytree.tree_leaves(values)
    ]


def look(tensor: Tensor) -> dict[str, Any]:
    """Returns the metadata of a tensor, with the device type without an index."""
    strided = is_strided(tensor)
    return {
        "device": tensor.device.type,
        "dtype": tensor.dtype,
        "layout": tensor.layout,
        "size": tuple(tensor.size()),
        "stride": tensor.stride() if strided else None,
        "storage offset": tensor.storage_offset() if strided else None,
    }


def ones_for(outputs: Any) -> tuple[list[Tensor], list[Tensor]]:
    """Returns the differentiable tensors of a result, and ones in their layouts."""
    differentiable = [each for each in tensors(outputs) if each.requires_grad]
    return differentiable, [torch.ones_like(each) for each in differentiable]


def run(
    call: Callable[..., Any],
    arguments: Arguments,
    process: Callable[[Any], Any] = lambda result: result,
    *,
    fake: bool,
) -> Run:
    """Calls an operator with arguments on a device, or with fake arguments."""
    if not fake:
        return _call(call, arguments, process)
    mode = FakeTensorMode()
    faked = pytree.tree_map_only(Tensor, mode.from_tensor, arguments)
    with mode:
        return _call(call, faked, process)


def _call(
    call: Callable[..., Any], arguments: Arguments, process: Callable[[Any], Any]
) -> Run:
    args, kwargs = arguments
    made = attempt(lambda: call(*args, **kwargs))
    if made.error is not None:
        return Run(made)
    forward = Attempt(value=looks(made.value))
    outputs, ones = ones_for(attempt(lambda: process(made.value)).value)
    inputs = leaves(arguments)
    if not inputs or not outputs:
        return Run(forward)
    backward = attempt(
        lambda: looks(torch.autograd.grad(outputs, inputs, ones, allow_unused=True))
    )
    return Run(forward, backward)


def differences(fake: Attempt, real: Attempt) -> dict[str, str]:
    """Lists the differences between two lists of ``looks``, or exceptions."""
    if fake.error is not None or real.error is not None:
        told = [describe(e.error) if e.error else "none" for e in (fake, real)]
        same = type(fake.error) is type(real.error)
        return {} if same else {"exception": f"fake {told[0]}, real {told[1]}"}
    if len(fake.value) != len(real.value):
        return {"results": f"fake {len(fake.value)}, real {len(real.value)}"}
    return {
        f"{name} of result {i}": f"fake {one[name]}, real {other[name]}"
        for i, (one, other) in enumerate(zip(fake.value, real.value, strict=True))
        if one is not None and other is not None
        for name in PROPERTIES
        if one[name] != other[name]
    }


def check_call(
    tally: Tally,
    label: str,
    call: Callable[..., Any],
    move: Callable[[str], Arguments],
    process: Callable[[Any], Any] = lambda result: result,
) -> None:
    """Compares fake and real metadata of a call, forward and backward.

    Differences that also exist on the CPU belong to PyTorch.

    Args:
        tally: Counts the check.
        label: The name of the call, for failure messages.
        call: The operator.
        move: Creates the arguments on a device.
        process: Converts the result to a value with a defined gradient.
    """

    def pair(device: str) -> tuple[Run, Run]:
        fake, real = (
            run(call, move(device), process, fake=each) for each in (True, False)
        )
        return fake, real

    fake, real = pair(tally.device)
    on_cpu: tuple[Run, Run] | None = None
    for direction in ("forward", "backward"):
        attempts = getattr(fake, direction), getattr(real, direction)
        if None in attempts:
            continue
        mine = differences(*attempts)
        if mine:
            on_cpu = on_cpu or pair("cpu")
            theirs = getattr(on_cpu[0], direction), getattr(on_cpu[1], direction)
            known = {} if None in theirs else differences(*theirs)
            mine = {key: told for key, told in mine.items() if key not in known}
        problem = "; ".join(f"{key}: {told}" for key, told in mine.items())
        tally.note("fake", f"{label} {direction}", problem or None)


def check_fake(tally: Tally, label: str, op: OpInfo, sample: SampleInput) -> None:
    """Compares fake and real metadata of an operator, in several layouts."""
    for name, arguments in layouts(op, sample):
        tally.call = Call("fake", op, arguments)
        check_call(
            tally,
            label + name,
            op,
            lambda device, arguments=arguments: on(device, op, arguments),
            sample.output_process_fn_grad,
        )


def permuted(tensor: Tensor) -> Tensor:
    """Returns a copy with the first and last dimensions swapped in memory."""
    if tensor.dim() < 2:
        return tensor.clone()
    return tensor.transpose(0, -1).contiguous().transpose(0, -1)


def layouts(op: OpInfo, sample: SampleInput) -> Iterator[tuple[str, Arguments]]:
    """Yields a sample's arguments unchanged and in other layouts."""
    arguments = arguments_of(sample)
    yield "", arguments
    if not all(is_strided(each) for each in tensors(arguments)):
        return
    for name, changed in variants(op, arguments, swept_dtype(op)):
        if "view" not in name:  # conjugate and negative views have the same metadata
            yield name, changed
    if any(each.dim() >= 2 for each in tensors(arguments)):
        yield " permuted", transform(arguments, permuted)
