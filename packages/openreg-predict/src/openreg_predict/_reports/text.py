# SPDX-License-Identifier: BSD-3-Clause
"""Predictions as text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from openreg_predict._costs.interval import Interval

if TYPE_CHECKING:
    from openreg_predict._memory.replay import MemoryUse
    from openreg_predict._reports.prediction import (
        Comparison,
        Prediction,
        RanksPrediction,
        Share,
    )


def time_text(seconds: float) -> str:
    """Returns a time with three digits and a unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return (
                f"{seconds / size:.3g} {unit}" if seconds < 1000 else f"{seconds:.0f} s"
            )
    return f"{seconds / 1e-6:.3g} us"


def size_text(size: float) -> str:
    """Returns a number of bytes with three digits and a unit."""
    for unit, bytes_ in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if abs(size) >= bytes_:
            return f"{size / bytes_:.1f} {unit}"
    return f"{size:.0f} B"


def interval_text(time: Interval) -> str:
    """Returns a time and its interval."""
    bounds = f"{time_text(time.low)} to {time_text(time.high)}"
    return f"{time_text(time.value)} (80 %: {bounds})"


def table_of(prediction: Prediction) -> str:
    """Returns a prediction as text."""
    p = prediction
    what = f"a step, of {p.steps} found" if p.steps > 1 else "the whole run"
    lines = [
        f"{p.device.id}: {p.device.name}",
        f"  {what}: {interval_text(p.step)}",
    ]
    if p.steps > 1:
        lines.append(f"  the whole run: {interval_text(p.total)}")
    if p.mfu:
        lines.append(f"  model FLOPs utilization: {100 * p.mfu:.1f} % of the peak")
    if p.price is not None:
        lines.append(f"  price of a step: {p.price:.3g} USD")
    lines += ["", "bound by"]
    whole = sum(p.bound.values()) or 1.0
    for name, seconds in sorted(p.bound.items(), key=lambda each: -each[1]):
        if seconds:
            share = 100 * seconds / whole
            lines.append(f"  {name:<24}{time_text(seconds):>10}{share:>7.1f} %")
    for title, shares in (
        ("class", p.classes),
        ("module", p.modules),
        ("operator", p.operators),
    ):
        lines += _shares(title, shares)
    if p.unclassified:
        lines += _shares(
            "operators without a class, costed by their bytes", p.unclassified
        )
    lines += ["", "what if"]
    for name, seconds in p.what_if.items():
        lines.append(f"  {name:<24}{time_text(seconds):>10}")
    for use in p.memory:
        lines += _memory(use)
    record = p.analysis.record
    for name, count in record.assumed.items():
        lines.append(f"assumed value: {name}, {count} times")
    lines += [f"problem: {each}" for each in record.problems]
    return "\n".join(lines)


def _shares(title: str, shares: Sequence[Share], most: int = 8) -> list[str]:
    head = f"{title:<48}"[:48]
    lines = ["", f"{head}{'calls':>9}{'time':>11}{'share':>8}"]
    for each in shares[:most]:
        name = each.name if len(each.name) <= 44 else each.name[:41] + "..."
        lines.append(
            f"  {name:<46}{each.calls:>9.6g}{time_text(each.seconds):>11}"
            f"{100 * each.share:>6.1f} %"
        )
    if len(shares) > most:
        lines.append(f"  and {len(shares) - most} others")
    return lines


def _memory(use: MemoryUse) -> list[str]:
    """Returns the device memory as lines."""
    low, high = use.bounds()
    lines = [
        "",
        f"memory of device {use.device}",
        f"  peak of allocated       {size_text(use.allocated_peak):>12}",
        f"  peak of reserved        {size_text(use.reserved_peak):>12}  "
        f"(80 %: {size_text(low)} to {size_text(high)})",
        f"  not in use, of reserved {100 * use.fragmentation:>10.1f} %",
        f"  context and collectives {size_text(use.context):>12}",
        f"  capacity                {size_text(use.capacity):>12}",
        "  " + verdict(use),
    ]
    if use.holders:
        lines.append("  in use at the peak")
        for owner, size in sorted(use.holders.items(), key=lambda each: -each[1]):
            lines.append(f"    {owner:<22}{size_text(size):>12}")
    return lines


def verdict(use: MemoryUse) -> str:
    """Returns whether a run fits, and by how much."""
    if not use.fits:
        return f"does not fit: {size_text(use.out_of_memory)} are missing"
    if use.retries:
        return f"fits, but short memory empties the cache {use.retries} times"
    return f"fits: {size_text(use.spare)} are left"


def comparison_of(comparison: Comparison) -> str:
    """Returns devices as text, the fastest first."""
    line = "{:<18}{:>10}{:>22}{:>8}{:>12}{:>12}  {}"
    lines = [line.format("device", "step", "80 %", "MFU", "memory", "USD/step", "fits")]
    for p in sorted(comparison.predictions, key=lambda each: each.step.value):
        bounds = f"{time_text(p.step.low)} to {time_text(p.step.high)}"
        peak = max((use.total for use in p.memory), default=0)
        price = "-" if p.price is None else f"{p.price:.3g}"
        fits = "yes" if p.fits else "no"
        cells = (
            time_text(p.step.value),
            bounds,
            f"{100 * p.mfu:.0f} %",
            size_text(peak),
        )
        lines.append(line.format(p.device.id, *cells, price, fits))
    return "\n".join(lines)


def ranks_table(prediction: RanksPrediction) -> str:
    """Returns the ranks of a run, and the slowest one in detail."""
    line = "{:<6}{:>10}{:>22}{:>10}{:>10}{:>10}{:>12}  {}"
    names = ("busy", "wait", "link")
    lines = [line.format("rank", "step", "80 %", *names, "memory", "fits")]
    for rank, p in prediction.ranks.items():
        waiting, link = p.bound["waiting"], p.bound["communication"]
        busy = sum(p.bound[each] for each in ("compute", "memory", "launch"))
        whole = sum(p.bound.values()) or 1.0
        shares = [f"{100 * each / whole:.1f} %" for each in (busy, waiting, link)]
        lines.append(
            line.format(
                rank,
                time_text(p.step.value),
                f"{time_text(p.step.low)} to {time_text(p.step.high)}",
                *shares,
                size_text(max((use.total for use in p.memory), default=0)),
                "yes" if p.fits else "no",
            )
        )
    slowest = prediction.slowest
    rank = next(r for r, p in prediction.ranks.items() if p is slowest)
    return "\n".join([*lines, "", f"rank {rank}", table_of(slowest)])


def memory_table(prediction: Prediction) -> str:
    """Returns the memory of all devices as text."""
    head = f"{prediction.device.id}: {prediction.device.name}"
    lines = [each for use in prediction.memory for each in _memory(use)]
    return "\n".join([head, *lines])
