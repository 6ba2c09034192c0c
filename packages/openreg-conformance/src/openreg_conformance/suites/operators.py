# SPDX-License-Identifier: BSD-3-Clause
"""Operators of PyTorch's database, in every way that they can be called."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.testing._internal.common_device_type import toleranceOverride
from torch.testing._internal.opinfo.core import DecorateInfo, OpInfo, SampleInput

from openreg_conformance.case import Case, Inexact, Verdict
from openreg_conformance.checks.fake import check_fake, permuted
from openreg_conformance.checks.forward_ad import check_forward_ad
from openreg_conformance.checks.mirrors import is_strided, tensors, transform
from openreg_conformance.checks.operators import (
    arguments_of,
    check_call,
    check_errors,
    check_out,
    check_sample,
)
from openreg_conformance.checks.samples import (
    case_name,
    choose,
    operator_cases,
    samples,
    short,
)
from openreg_conformance.checks.sweep import SWEPT, swept_dtype
from openreg_conformance.checks.tally import VALUE_CHECKS, Call, Tally, quiet
from openreg_conformance.checks.versions import check_versions
from openreg_conformance.mechanisms import MECHANISMS
from openreg_conformance.programs import all_samples, program
from openreg_conformance.usage import share_of

SMOKE_SHARE = 0.25  # operators that this share of models calls
SAMPLES = {"smoke": 2, "sample": 3}
RARE = ("out", "forward_ad", "fake")  # few of the programs that call an operator do so
# The tests of PyTorch that compare values, whose tolerances hold here.
_TESTS = {None, "test_compare_cpu", "test_noncontiguous_samples", "test_out"}

Check = Callable[[Tally, str, OpInfo, SampleInput], None]


def cases(level: str) -> Iterator[Case]:
    """Lists the cases of a level."""
    for op, layout, dtype in operator_cases(level == "whole"):
        if level == "smoke":
            continue
        phases = ["forward", "backward"] if _differentiates(op, dtype) else ["forward"]
        if op.inplace_variant is not None:
            phases.append("in-place")
        if layout == torch.strided and op.supports_out:
            phases += [] if op.name.startswith("_foreach") else ["out="]
        for phase in phases:
            yield _case(op, layout, dtype, phase, level)
    for op in SWEPT:
        if level == "smoke" and share_of(op.full_name) < SMOKE_SHARE:
            continue
        dtype = swept_dtype(op)
        phases = ["version", "fake"]
        if level == "smoke":
            phases = ["forward", "version", "in-place", *phases[1:]]
            if _differentiates(op, dtype):
                phases.append("backward")
            if op.supports_out and not op.name.startswith("_foreach"):
                phases.append("out=")
        if level != "smoke":
            phases.append("tangent")
        if op.error_inputs_func is not None:
            phases.append("error")
        for phase in phases:
            if phase != "in-place" or op.inplace_variant is not None:
                yield _case(op, torch.strided, dtype, phase, level)


def _differentiates(op: OpInfo, dtype: torch.dtype) -> bool:
    inexact = dtype.is_floating_point or dtype.is_complex
    return bool(op.supports_autograd and dtype in op.backward_dtypes and inexact)


def _case(
    op: OpInfo, layout: torch.layout, dtype: torch.dtype, phase: str, level: str
) -> Case:
    names = case_name(op, layout, dtype).removeprefix(op.full_name)
    mechanism = {
        "forward": "operators",
        "backward": "gradients",
        "in-place": "in_place",
        "out=": "out",
        "tangent": "forward_ad",
        "version": "versions",
        "fake": "fake",
        "error": "errors",
    }[phase]
    share, subject = share_of(op.full_name), op.full_name
    if mechanism in RARE:
        share *= MECHANISMS[mechanism].users
    if layout != torch.strided:
        mechanism, subject = "sparse", short(layout)
        share *= MECHANISMS[mechanism].users
    return Case(
        name=f"operators/{op.full_name}{names.replace('-', '/')}/{phase}",
        mechanism=mechanism,
        subject=subject,
        title=f"{op.full_name} of {short(dtype)} as on the CPU: {phase}",
        run=functools.partial(_judge, op, layout, dtype, phase, level),
        program=functools.partial(all_samples, op.full_name, short(dtype)),
        users=share,
    )


# The samples of the last case: the next one often takes them in another way.
_last: dict[str, list[tuple[int, SampleInput]]] = {}


def _samples(
    op: OpInfo, layout: torch.layout, dtype: torch.dtype, level: str
) -> list[tuple[int, SampleInput]]:
    key = case_name(op, layout, dtype)
    if key not in _last:
        _last.clear()
        _last[key] = _make_samples(op, layout, dtype, level)
    return _last[key]


def _make_samples(
    op: OpInfo, layout: torch.layout, dtype: torch.dtype, level: str
) -> list[tuple[int, SampleInput]]:
    with quiet():
        made = samples(op, layout, dtype, whole=True)
    if level == "whole":
        return made
    chosen = dict(choose(case_name(op, layout, dtype), made, SAMPLES[level]))
    wide = [(i, each) for i, each in made if _is_wide(each)]
    return sorted((chosen | dict(wide[:1])).items())


def _is_wide(sample: SampleInput) -> bool:
    """Whether layouts matter: the input has two dimensions of several elements."""
    return any(
        sum(size > 1 for size in each.shape) >= 2 for each in tensors(sample.input)
    )


def tolerances(op: OpInfo) -> dict[torch.dtype, Any]:
    """Returns the tolerances of an operator in PyTorch's own tests.

    Returns:
        The relative and the absolute tolerance of each dtype that has one.
    """
    found: dict[torch.dtype, Any] = {}
    for each in op.decorators:
        if not isinstance(each, DecorateInfo) or each.test_name not in _TESTS:
            continue
        for decorator in each.decorators:
            if isinstance(decorator, toleranceOverride):
                for kind, allowed in decorator.d.items():
                    rtol, atol = found.get(kind, (0.0, 0.0))
                    found[kind] = max(rtol, allowed.rtol), max(atol, allowed.atol)
    return found


def _judge(
    op: OpInfo,
    layout: torch.layout,
    dtype: torch.dtype,
    phase: str,
    level: str,
    device: str,
) -> Verdict:
    tally = Tally(
        device, frozenset([phase]), own_numbers=True, tolerances=tolerances(op)
    )
    if phase == "error":
        check_errors(tally, op)
        return verdict(tally, device, op.full_name, short(dtype))
    check: Check = {
        "version": check_versions,
        "fake": check_fake,
        "tangent": check_forward_ad,
    }.get(phase, functools.partial(_check_values, dtype))
    for i, sample in _samples(op, layout, dtype, level):
        with quiet():
            check(tally, f"sample {i}", op, sample)
    return verdict(tally, device, op.full_name, short(dtype))


def _check_values(
    dtype: torch.dtype, tally: Tally, label: str, op: OpInfo, sample: SampleInput
) -> None:
    check_sample(tally, label, op, dtype, sample)
    arguments = arguments_of(sample)
    given = tensors(arguments)
    if not all(is_strided(each) for each in given):
        return
    # The database has next to no transposed tensors.
    if any(each.dim() >= 2 for each in given):
        label, changed = f"{label} permuted", transform(arguments, permuted)
        process = sample.output_process_fn_grad
        if tally.wants("forward"):
            check_call(tally, label, op, op, changed, process=process)
        if tally.wants("out="):
            check_out(tally, label, op, changed)


def verdict(tally: Tally, device: str, name: str = "", dtype: str = "") -> Verdict:
    """Makes a verdict of a tally.

    Args:
        tally: The counts.
        device: For the program of a failure.
        name: The operator, if the program shall be that of a call.
        dtype: Of the samples.
    """
    passed, made, same = (
        sum(each[i] for each in tally.counts.values()) for i in (0, 1, 2)
    )
    values = any(tally.counts[check][1] for check in VALUE_CHECKS)

    def written(call: Call | None, check: str, message: str, *, exact: bool) -> str:
        if not name or call is None:
            return ""
        kind = check if check in ("backward", "error") else call.kind
        number = re.search(r"(?:sample|error) (\d+)", message)
        where = name, dtype, int(number[1]) if number else 0
        call = Call(kind, call.op, call.arguments)
        return program(call, device, where, exact=exact)

    inexact = None
    if tally.inexact:
        check, message = tally.inexact[0]
        shown = written(tally.inexact_call, check, message, exact=True)
        inexact = Inexact(len(tally.inexact), message, shown)
    found = Verdict(made, passed, same if values else None, inexact=inexact)
    if not tally.failures:
        return found
    check, message = tally.failures[0]
    more = len(tally.failures) - 1
    return dataclasses.replace(
        found,
        message=message + f" (and {more} more)" * bool(more),
        check=check,
        program=written(tally.failed_call, check, message, exact=False),
    )
