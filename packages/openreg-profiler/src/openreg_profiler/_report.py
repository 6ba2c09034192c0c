# SPDX-License-Identifier: BSD-3-Clause
"""The utilization report as text and as a page with plots."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from openreg_profiler import _page_style as page_style

if TYPE_CHECKING:
    from openreg_profiler._utilization import Operator, Utilization

_MOST_ROWS = 15
_GIGA = 1e9
_WIDTH, _LANE = 900, 22
_COLORS = {
    "kernel": "var(--bar)",
    "memcpy": "var(--second)",
    "memset": "var(--third)",
}
_STYLE = """
polyline { fill: none; stroke: var(--faint); }
"""
# Columns of text; the first column always is text.
_TEXT = ("cause", "line", "what to do", "stream")

Table = tuple[str, Sequence[str], list[Sequence[str]]]


def _number(value: float | None, unit: float = 1.0) -> str:
    return "" if value is None else f"{value / unit:.3g}"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def _tables(report: Utilization) -> list[Table]:
    """Returns the tables: title, column names, rows."""
    changes = [
        (f"{c.seconds * 1e3:.3f}", c.cause, c.line or "?", str(c.times), c.advice)
        for c in report.changes
    ]
    busy = [
        (
            str(b.device),
            "all" if b.stream is None else str(b.stream),
            f"{b.seconds * 1e3:.3f}",
            _percent(b.share),
        )
        for b in report.busy
    ]
    causes = sorted({gap.cause for gap in report.gaps})
    idle = []
    for cause in causes:
        lengths = [gap.end - gap.start for gap in report.gaps if gap.cause == cause]
        idle.append((cause, str(len(lengths)), f"{sum(lengths) * 1e-6:.3f}"))
    operators = [
        (
            row.name,
            str(row.launches),
            f"{row.seconds * 1e3:.3f}",
            _number(row.flops, _GIGA),
            _number(row.bandwidth, _GIGA),
            _percent(row.share),
        )
        for row in report.operators[:_MOST_ROWS]
    ]
    memory = [
        (owner, f"{size / 2**20:.3f}")
        for owner, size in sorted(report.memory.items(), key=lambda item: -item[1])
    ]
    best = (
        f"{_number(report.machine.flops, _GIGA)} GFLOP/s, "
        f"{_number(report.machine.bandwidth, _GIGA)} GB/s"
    )
    tables: list[Table] = [
        (
            "changes that would save most",
            ("up to ms", "cause", "line", "times", "what to do"),
            list(changes),
        ),
        ("busy", ("device", "stream", "ms", "share"), list(busy)),
        ("idle", ("cause", "gaps", "ms"), list(idle)),
        (
            f"operators (this machine's best: {best})",
            ("operator", "kernels", "ms", "GFLOP/s", "GB/s", "of the best"),
            list(operators),
        ),
    ]
    if memory:
        tables.append(
            ("memory when most was allocated", ("owner", "MiB"), list(memory))
        )
    return tables


def _summary(report: Utilization) -> str:
    steps = ""
    if report.launches_per_step is not None:
        steps = f", {report.launches_per_step:.1f} for each of {report.steps} steps"
    return f"{report.seconds * 1e3:.3f} ms, {report.launches} launches{steps}"


def table(report: Utilization) -> str:
    """Returns the report for a terminal."""
    lines = [_summary(report)]
    for title, columns, rows in _tables(report):
        cells = [tuple(columns), *rows]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines += ["", title]
        lines += [
            ("  " + "  ".join(map(str.ljust, row, widths))).rstrip() for row in cells
        ]
    return "\n".join(lines)


def _lanes(report: Utilization) -> str:
    """Draws the work of each stream as a lane."""
    places = sorted({(each.device, each.stream) for each in report.work})
    begin = min(each.start for each in report.work)
    whole = max(max(each.end for each in report.work) - begin, 1)
    parts = []
    for place, (device, stream) in enumerate(places):
        top = place * (_LANE + 16)
        parts.append(
            f'<text x="0" y="{top + 11}">device {device}, stream {stream}</text>'
        )
        for each in report.work:
            if (each.device, each.stream) != (device, stream):
                continue
            left = (each.start - begin) / whole * _WIDTH
            width = max((each.end - each.start) / whole * _WIDTH, 0.3)
            microseconds = (each.end - each.start) / 1000
            parts.append(
                f'<rect x="{left:.2f}" y="{top + 14}" width="{width:.2f}" '
                f'height="{_LANE}" style="fill:{_COLORS[each.kind]}">'
                f"<title>{escape(each.name)}: {microseconds:.1f} us</title></rect>"
            )
    height = len(places) * (_LANE + 16)
    kinds = {each.kind for each in report.work}
    shown = [(color, kind) for kind, color in _COLORS.items() if kind in kinds]
    lanes = f'<svg viewBox="0 0 {_WIDTH} {height}">{"".join(parts)}</svg>'
    return page_style.key(shown) + lanes


def _logarithm(value: float, least: float, most: float, length: float) -> float:
    return (
        (math.log10(value) - math.log10(least))
        / (math.log10(most) - math.log10(least))
        * length
    )


def _roofline(report: Utilization) -> str:
    """Draws operators below the machine's peak rates."""
    machine = report.machine
    points: list[tuple[Operator, float, float]] = [
        (row, row.flops / row.bandwidth, row.flops)
        for row in report.operators
        if row.flops and row.bandwidth
    ]
    if not points:
        return "<p>No operator whose floating-point operations are known.</p>"
    ridge = machine.flops / machine.bandwidth
    intensities = [intensity for _, intensity, _ in points]
    left, right = min([*intensities, ridge]) / 4, max([*intensities, ridge]) * 4
    top = max([machine.flops, *(rate for _, _, rate in points)]) * 2
    bottom = min([machine.bandwidth * left, *(rate for _, _, rate in points)]) / 2
    height = 360

    def at(intensity: float, rate: float) -> tuple[float, float]:
        return (
            _logarithm(intensity, left, right, _WIDTH),
            height - _logarithm(rate, bottom, top, height),
        )

    def path(corners: Iterable[tuple[float, float]]) -> str:
        return " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(*each) for each in corners))

    roof = path(
        [
            (left, machine.bandwidth * left),
            (ridge, machine.flops),
            (right, machine.flops),
        ]
    )
    parts = [f'<polyline points="{roof}"/>']
    for row, intensity, rate in points:
        x, y = at(intensity, rate)
        label = f"{row.name}: {rate / _GIGA:.3g} GFLOP/s"
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5">'
            f"<title>{escape(label)}</title></circle>"
            f'<text x="{x + 8:.1f}" y="{y + 4:.1f}">{escape(row.name)}</text>'
        )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}">{"".join(parts)}</svg>'
        "<p>To the right: operations per byte; upwards: operations per second.</p>"
    )


def page(report: Utilization) -> str:
    """Returns the report as an HTML page."""
    parts = [f"<p class=big>{escape(_summary(report))}</p>"]
    parts += ["<h2>Streams</h2>", _lanes(report)]
    for title, columns, rows in _tables(report):
        heading = title[0].upper() + title[1:]
        parts += [f"<h2>{escape(heading)}</h2>", _html_table(columns, rows)]
    parts += ["<h2>Roofline</h2>", _roofline(report)]
    return page_style.page("Utilization", parts, style=_STYLE)


def _html_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a table; shares are bars, too."""
    shares = [name for name in columns if name in ("share", "of the best")]
    kinds = ["<{0} class=text>" if name in _TEXT else "<{0}>" for name in columns]
    head = "".join(
        kind.format("th") + escape(name)
        for kind, name in zip(kinds, columns, strict=True)
    )
    lines = []
    for row in rows:
        cells = "".join(
            kind.format("td") + f"{escape(cell)}</td>"
            for kind, cell in zip(kinds, row, strict=True)
        )
        for name in shares:
            value = row[columns.index(name)].removesuffix("%")
            plot = page_style.bar(float(value) / 100) if value else ""
            cells += f"<td class=plot>{plot}</td>"
        lines.append(f"<tr>{cells}</tr>")
    more = "<th>" * len(shares)
    body = "".join(lines)
    return f"<div class=wide><table><tr>{head}{more}</tr>{body}</table></div>"
