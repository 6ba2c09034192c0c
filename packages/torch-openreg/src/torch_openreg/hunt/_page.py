# SPDX-License-Identifier: BSD-3-Clause
"""The results of ``hunt`` as a page."""

from __future__ import annotations

from html import escape

from . import _page_style
from ._results import Finding, Hunt

_STYLE = "td.FAIL { background: var(--bad); color: #fff; font-weight: bold; }"


def page(hunt: Hunt) -> str:
    """Returns the page, which needs no other file."""
    findings = hunt.findings()
    last = escape(hunt.table().rsplit("\n", 1)[-1])
    parts = [
        f"<p class=big>{last}</p>",
        _runs(hunt),
        _matrix(hunt, findings) if findings else "",
        *map(_details, findings),
        *(
            f"<h2>{escape(failure.test)}</h2><p>fails in a plain run</p>"
            f"<pre>{escape(failure.message)}\n{escape(failure.command)}</pre>"
            for failure in hunt.plain_failures()
        ),
    ]
    title = f"pytest {' '.join(hunt.arguments)}"
    return _page_style.page(title, filter(None, parts), style=_STYLE)


def _row(tag: str, cells: list[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in cells) + "</tr>"


def _table(rows: list[str]) -> str:
    return "<div class=wide><table>" + "\n".join(rows) + "</table></div>"


def _runs(hunt: Hunt) -> str:
    rows = [_row("th", ["mode", "finds", "tests", "failed", "seconds"])]
    for run in hunt.runs:
        counts = [str(len(run.tests)), str(len(run.failures)), f"{run.seconds:.1f}"]
        rows.append(_row("td", [run.mode.name, escape(run.mode.finds), *counts]))
    return _table(rows)


def _matrix(hunt: Hunt, findings: list[Finding]) -> str:
    rows = [_row("th", ["test", *(run.mode.name for run in hunt.runs)])]
    for finding in findings:
        cells = [hunt.cell(run, finding.test) for run in hunt.runs]
        marked = "".join(f'<td class="{cell}">{cell}</td>' for cell in cells)
        rows.append(f"<tr><td>{escape(finding.test)}</td>{marked}</tr>")
    return _table(rows)


def _details(finding: Finding) -> str:
    mode, failure = finding.failures[0]
    return (
        f"<h2>{escape(finding.test)}</h2>"
        f"<p>first in mode {mode.name}: {escape(mode.finds)}</p>"
        f"<pre>{escape(failure.message)}\n{escape(failure.command)}</pre>"
    )
