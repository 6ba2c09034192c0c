# SPDX-License-Identifier: BSD-3-Clause
"""The time of one operator on a described device."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from openreg_predict._costs import models
from openreg_predict._costs.entries import entries, entry_of
from openreg_predict._costs.interval import Interval, total
from openreg_predict._devices.description import DescribedDevice
from openreg_predict._devices.hardware import hardware
from openreg_predict._works.work import Work

# Bytes relative to one pass over operands and results, for classes without training
# rows: assumed, so their intervals are wide.
_PASSES: Mapping[str, float] = {
    "sort": 8.0,
    "scan": 1.5,
    "gather": 1.3,
    "scatter": 1.5,
    "random": 1.0,
    "linalg": 4.0,
    "fft": 2.0,
    "rnn": 2.0,
    "unknown": 1.0,
}
_ASSUMED = (0.6, 1.7)
_TRANSFER_START = 8e-6
_TRANSFER_SHARE = 0.8


def predict(
    work: Work, device: DescribedDevice, *, sheet_only: bool = False
) -> Interval:
    """Returns the time that the device needs for the work, without host time.

    Args:
        work: The work of one operator; a view takes no time.
        device: The described device.
        sheet_only: Whether to ignore measured fields of the device.
    """
    return predict_all([work], device, sheet_only=sheet_only)[0]


def predict_all(
    works: Sequence[Work],
    device: DescribedDevice,
    *,
    sheet_only: bool = False,
    in_model: bool = False,
) -> list[Interval]:
    """Returns the time of each work; faster than one call for each.

    Args:
        works: The works.
        device: The described device.
        sheet_only: Whether to ignore measured fields of the device.
        in_model: Whether the works are kernels of one program, whose times differ from
            the times of a repeated kernel by factors fitted to whole models.
    """
    device = device.sheet if sheet_only else device
    result = [Interval.exact(0.0)] * len(works)
    groups: dict[str, list[int]] = defaultdict(list)
    for i, work in enumerate(works):
        if work.kind == "transfer":
            wire = work.read / (_TRANSFER_SHARE * hardware(device).pcie)
            result[i] = Interval.around(_TRANSFER_START + wire, *_ASSUMED)
        elif work.kind != "view" and "also_input" not in work.facts:
            groups[entry_of(work, device)].append(i)
    for i, work in enumerate(works):
        if "also_input" in work.facts:
            result[i] = total(predict_all(_both(work), device))
    for name, places in groups.items():
        some = [_with_passes(works[i]) for i in places]
        for i, time in zip(
            places, entries()[name].predict(some, [device] * len(some)), strict=True
        ):
            assumed = works[i].kind in _PASSES
            result[i] = Interval.around(time.value, *_ASSUMED) if assumed else time
    if in_model:
        result = [
            time * (models.in_model(work, device, time.value) / time.value)
            if time.value
            else time
            for work, time in zip(works, result, strict=True)
        ]
    return result


def _with_passes(work: Work) -> Work:
    passes = _PASSES.get(work.kind, 1.0)
    if passes == 1.0:
        return work
    return replace(work, read=work.read * passes, written=work.written * passes)


def _both(work: Work) -> list[Work]:
    """Returns the two kernels of the backward pass of a convolution."""
    facts = {name: each for name, each in work.facts.items() if name != "also_input"}
    weight = replace(work, flops=work.flops / 2, read=work.read / 2,
                     written=work.written / 2, facts=facts)  # fmt: skip
    swapped = {**facts, "input": 1, "weight": 0, "pass": "input"}
    return [weight, replace(weight, facts=swapped)]
