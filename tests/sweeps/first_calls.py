# SPDX-License-Identifier: BSD-3-Clause
"""Checks that first calls of operators do not wait for a busy stream.

As a program it calls all operators, in a process that has called no others, and prints
its findings as lines of JSON.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils._python_dispatch import TorchDispatchMode

import openreg_runtime as runtime
from openreg_conformance.case import BITS
from openreg_conformance.checks.agreement import leaves
from openreg_conformance.checks.comparison import Likeness, compare, describe
from openreg_conformance.checks.fake import ones_for, permuted
from openreg_conformance.checks.mirrors import is_strided, tensors, transform
from openreg_conformance.checks.operators import Arguments, arguments_of, has_values, on
from openreg_conformance.checks.samples import short
from openreg_conformance.checks.sweep import SWEPT, sampled, swept_dtype
from openreg_conformance.checks.tally import Attempt, attempt, quiet
from openreg_conformance.expectations import read
from openreg_runtime import failures
from support.latches import Latch

from . import DEVICE
from .waits import NO_OPERATOR

# A wait for a held stream can only time out, so any limit works; calls that do not wait
# are not limited.
TIMEOUT = 0.005


@contextlib.contextmanager
def held_stream() -> Iterator[None]:
    """Holds the current device's default stream, and limits waits for it."""
    latch = Latch(runtime.Device(0).default_stream)
    try:
        with failures.wait_timeout(TIMEOUT, 0):
            yield
    finally:
        latch.release()


@dataclasses.dataclass
class FirstCall:
    """The result of an operator's first call on a sample.

    Attributes:
        case: Its case name in openreg-conformance: operator and dtype.
        part: ``"forward"``, ``"backward"`` or ``"out="`` and the sample.
        waits: The ATen operator that waited for the stream, if any.
        problem: How the result differs from the CPU's.
    """

    case: str
    part: str
    waits: str
    problem: str | None = None


class _Running(TorchDispatchMode):
    """Records the running operator, and after an exception the one that raised it."""

    name = ""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.name = func.name()
        result = func(*args, **(kwargs or {}))
        self.name = ""
        return result


def _watch(call: Callable[[], Any]) -> tuple[Attempt, str]:
    """Makes a call while the stream is held, and names the operator that waited.

    That call raises an exception. A second call finds the operator, if a dispatch mode
    sees it.
    """
    torch.accelerator.synchronize()
    with held_stream():
        made = attempt(call)
        waited = made.error is not None and "orErrorTimeout" in str(made.error)
        if waited:
            with _Running() as running:
                attempt(call)
            return made, running.name or NO_OPERATOR
    later = attempt(torch.accelerator.synchronize)
    return (made if later.error is None else later), ""


KNOWN = read(Path(__file__).with_name("openreg.toml"))


def _may_round(case: str) -> bool:
    """Returns whether results of a case may differ from the CPU's in the last bits."""
    return any(each.names(case) and each.check in ("", BITS) for each in KNOWN)


def _problem(case: str, mine: Attempt, expected: Attempt, values: bool) -> str | None:
    if expected.error is not None or mine.error is not None:
        if type(mine.error) is type(expected.error):
            return None
        told = [describe(e.error) if e.error else "no error" for e in (mine, expected)]
        return f"{told[0]} (on the CPU: {told[1]})"
    likeness = attempt(
        lambda: compare(mine.value, expected.value, DEVICE, values=values)
    )
    if likeness.error is not None:
        return " ".join(str(likeness.error).split())[:300]
    if likeness.value == Likeness.CLOSE and not _may_round(case):
        return "results are not bitwise equal to the CPU's"
    return None


def check(op: OpInfo, label: str, sample: SampleInput) -> Iterator[FirstCall]:
    """Calls an operator for the first time, and then its backward pass."""
    arguments: Arguments = arguments_of(sample)
    case = f"operators/{op.full_name}/{short(swept_dtype(op))}/forward"
    process = sample.output_process_fn_grad
    made: dict[str, Attempt] = {}
    waits = ""
    inputs: dict[str, list[Tensor]] = {}
    for device in (DEVICE, "cpu"):
        args, kwargs = on(device, op, arguments)
        inputs[device] = leaves((args, kwargs))

        def call(args: Any = args, kwargs: Any = kwargs) -> Any:
            return op(*args, **kwargs)

        if device == "cpu":
            made[device] = attempt(call)
        else:
            made[device], waits = _watch(call)
    if waits and made["cpu"].error is None:  # calls that raise an error may wait
        yield FirstCall(case, f"forward {label}", waits)
    if waits:
        return
    values = has_values(op)
    problem = _problem(case, made[DEVICE], made["cpu"], values)
    yield FirstCall(case, f"forward {label}", "", problem)
    if problem is not None or made["cpu"].error is not None or not inputs["cpu"]:
        return
    outputs = {
        device: ones_for(attempt(lambda each=each: process(each.value)).value)
        for device, each in made.items()
    }
    if not outputs["cpu"][0]:
        return

    def back(device: str) -> Any:
        results, ones = outputs[device]
        return torch.autograd.grad(
            results, inputs[device], ones, retain_graph=True, allow_unused=True
        )

    mine, waits = _watch(lambda: back(DEVICE))
    if not waits:
        problem = _problem(case, mine, attempt(lambda: back("cpu")), values)
    yield FirstCall(case, f"backward {label}", waits, problem)


def check_out(op: OpInfo, label: str, sample: SampleInput) -> Iterator[FirstCall]:
    """Calls an out= variant with empty outputs for the first time.

    Its arguments are permuted, so its outputs have different strides. The call may
    wait.
    """
    arguments = arguments_of(sample)
    expected = attempt(lambda: op(*arguments[0], **arguments[1])).value
    seen = tensors((arguments, expected))
    if not tensors(expected) or not all(is_strided(each) for each in seen):
        return
    arguments = transform(arguments, permuted)
    case = f"operators/{op.full_name}/{short(swept_dtype(op))}/out"

    def into_empty(device: str) -> Callable[[], Any]:
        args, kwargs = on(device, op, arguments)
        made = [each.new_empty(0, device=device) for each in tensors(expected)]
        out = made[0] if isinstance(expected, Tensor) else tuple(made)
        return lambda: op(*args, **kwargs, out=out)

    on_cpu = attempt(into_empty("cpu"))
    mine, waits = _watch(into_empty(DEVICE))
    if not waits:
        problem = _problem(case, mine, on_cpu, has_values(op))
        yield FirstCall(case, f"out= {label}", "", problem)


def checks(op: OpInfo, label: str, sample: SampleInput) -> Iterator[FirstCall]:
    """Makes all first calls of an operator with a sample."""
    yield from check(op, label, sample)
    if op.supports_out and not op.name.startswith("_foreach"):
        yield from check_out(op, label, sample)


def main() -> None:
    """Calls all operators."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for op in SWEPT:
        print(json.dumps({"begun": op.full_name}), flush=True)  # noqa: T201
        with quiet():
            for i, sample in sampled(op, whole=False):
                for found in checks(op, f"sample {i}", sample):
                    print(json.dumps(dataclasses.asdict(found)), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
