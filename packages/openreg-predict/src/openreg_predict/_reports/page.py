# SPDX-License-Identifier: BSD-3-Clause
"""A prediction as a self-contained page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from openreg_predict._reports import page_style
from openreg_predict._reports.text import interval_text, size_text, time_text, verdict

if TYPE_CHECKING:
    from openreg_predict._memory.replay import MemoryUse
    from openreg_predict._reports.prediction import Prediction, Share

# Colors of parts, by their order; the same in both tables and bars.
_COLORS = (
    "#2f6f8f", "#2f8f5b", "#b4690e", "#7d5ba6", "#d1493f", "#8a94a0", "#a68a3c",
    "#4f9f9f",
)  # fmt: skip
_STYLE = """
.parts { height: 24px; }
.curve { height: 180px; border-bottom: 1px solid var(--line); }
.curve path { fill: none; stroke-width: 1.5; vector-effect: non-scaling-stroke; }
"""


def page_of(prediction: Prediction) -> str:
    """Returns the page of a prediction."""
    title = f"Prediction for {prediction.device.name}"
    return page_style.page(title, _body(prediction), style=_STYLE)


def _body(p: Prediction) -> Iterator[str]:
    what = f"A step, of {p.steps} found" if p.steps > 1 else "The whole run"
    yield f"<p class=big>{what}: {escape(interval_text(p.step))}</p>"
    facts = [f"device {p.device.id}"]
    if p.mfu:
        facts.append(f"{100 * p.mfu:.1f} % of the peak rate of matrix operations")
    if p.price is not None:
        facts.append(f"{p.price:.3g} USD a step")
    yield f"<p class=faint>{escape(', '.join(facts))}</p>"
    yield "<h2>Bound by</h2>"
    yield from _parts({k: v for k, v in p.bound.items() if v}, time_text)
    yield "<h2>If the device were different</h2>"
    yield from _what_if(p)
    for title, shares in (
        ("Operator classes", p.classes),
        ("Modules", p.modules),
        ("Operators", p.operators),
        ("Operators without a class, costed by their bytes", p.unclassified),
    ):
        if shares:
            yield f"<h2>{title}</h2>"
            yield from _shares(shares)
    for use in p.memory:
        yield from _memory(use)
    record = p.analysis.record
    notes = [f"assumed value: {k}, {v} times" for k, v in record.assumed.items()]
    for note in (*notes, *record.problems):
        yield f"<p>{escape(note)}</p>"


def _parts(parts: Mapping[str, float], text: Callable[[float], str]) -> Iterator[str]:
    """Returns a bar with its parts, and a key."""
    whole = sum(parts.values()) or 1.0
    ordered = sorted(parts.items(), key=lambda each: -each[1])
    colors = dict(zip((name for name, _ in ordered), _COLORS * 2, strict=False))
    at, bars, keys = 0.0, [], []
    for name, value in ordered:
        width = 100 * value / whole
        fill = f"style='fill:{colors[name]}'"
        bars.append(f"<rect {fill} x={at:.3f} width={width:.3f} height=10 />")
        at += width
        keys.append((colors[name], f"{name} {text(value)} ({width:.1f} %)"))
    label = escape(
        ", ".join(f"{name} {text(value)}" for name, value in ordered), quote=True
    )
    yield (
        "<svg class=parts viewBox='0 0 100 10' preserveAspectRatio=none role=img "
        f'aria-label="{label}">{"".join(bars)}</svg>'
    )
    yield page_style.key(keys)


def _what_if(p: Prediction) -> Iterator[str]:
    yield "<div class=wide><table><tr><th>change<th>a step<th>of today's<th></tr>"
    for name, seconds in p.what_if.items():
        share = seconds / p.step.value if p.step.value else 0.0
        yield _row(name, [time_text(seconds), f"{100 * share:.1f} %"], share)
    yield "</table></div>"


def _shares(shares: Sequence[Share], most: int = 20) -> Iterator[str]:
    yield "<div class=wide><table><tr><th>name<th>calls<th>time<th>share<th></tr>"
    for each in shares[:most]:
        cells = [
            f"{each.calls:.6g}",
            time_text(each.seconds),
            f"{100 * each.share:.1f} %",
        ]
        yield _row(each.name, cells, each.share)
    yield "</table></div>"
    if len(shares) > most:
        yield f"<p class=faint>and {len(shares) - most} others</p>"


def _row(name: str, cells: Sequence[str], share: float) -> str:
    numbers = "".join(f"<td>{escape(each)}</td>" for each in cells)
    plot = page_style.bar(share)
    return f"<tr><td>{escape(name)}</td>{numbers}<td class=plot>{plot}</td></tr>"


def _memory(use: MemoryUse) -> Iterator[str]:
    low, high = use.bounds()
    yield f"<h2>Memory of device {use.device}</h2>"
    yield f"<p class=big>{escape(verdict(use))}</p>"
    yield (
        f"<p>At the peak {size_text(use.allocated_peak)} are in use, and "
        f"{size_text(use.reserved_peak)} reserved (80 %: {size_text(low)} to "
        f"{size_text(high)}). The context takes {size_text(use.context)} of "
        f"{size_text(use.capacity)}.</p>"
    )
    yield from _parts(use.holders, size_text)
    yield from _curve(use)


def _curve(use: MemoryUse) -> Iterator[str]:
    """Returns a plot of the memory over the allocations of the run."""
    if not use.curve:
        return
    most = max(each[1] for each in use.curve) or 1
    step = 100 / max(len(use.curve) - 1, 1)
    paths = []
    for place, color in ((0, "var(--bar)"), (1, "var(--second)")):
        points = " L".join(
            f"{i * step:.2f} {100 - 98 * each[place] / most:.2f}"
            for i, each in enumerate(use.curve)
        )
        paths.append(f"<path style='stroke:{color}' d='M{points}' />")
    label = f"memory over the run, up to {size_text(most)}"
    yield (
        "<svg class=curve viewBox='0 0 100 100' preserveAspectRatio=none role=img "
        f"aria-label='{label}'>{''.join(paths)}</svg>"
    )
    yield (
        "<p class=faint>Memory over the allocations of the run: in use (lower line) "
        f"and reserved, up to {size_text(most)}.</p>"
    )
