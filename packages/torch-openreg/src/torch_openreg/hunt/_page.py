# SPDX-License-Identifier: BSD-3-Clause
"""The results of ``hunt`` as a page."""

from __future__ import annotations

from html import escape

from ._results import Finding, Hunt

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { border: 1px solid #ccc; padding: .2rem .6rem; text-align: left; }
td.FAIL { background: #fdd; font-weight: bold; }
code, pre { font: 13px/1.4 monospace; }
"""


def page(hunt: Hunt) -> str:
    """Returns the page, which needs no other file."""
    findings = hunt.findings()
    last = escape(hunt.table().rsplit("\n", 1)[-1])
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f"<title>hunt</title><style>{_STYLE}</style></head><body>",
        f"<h1>pytest {escape(' '.join(hunt.arguments))}</h1><p>{last}</p>",
        _runs(hunt),
        _matrix(hunt, findings) if findings else "",
        *map(_details, findings),
        *(
            f"<h2>{escape(failure.test)}</h2><p>fails in a plain run</p>"
            f"<pre>{escape(failure.message)}\n{escape(failure.command)}</pre>"
            for failure in hunt.plain_failures()
        ),
        "</body></html>",
    ]
    return "\n".join(filter(None, parts)) + "\n"


def _row(tag: str, cells: list[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in cells) + "</tr>"


def _runs(hunt: Hunt) -> str:
    rows = [_row("th", ["mode", "finds", "tests", "failed", "seconds"])]
    for run in hunt.runs:
        counts = [str(len(run.tests)), str(len(run.failures)), f"{run.seconds:.1f}"]
        rows.append(_row("td", [run.mode.name, escape(run.mode.finds), *counts]))
    return "<table>" + "\n".join(rows) + "</table>"


def _matrix(hunt: Hunt, findings: list[Finding]) -> str:
    rows = [_row("th", ["test", *(run.mode.name for run in hunt.runs)])]
    for finding in findings:
        cells = [hunt.cell(run, finding.test) for run in hunt.runs]
        marked = "".join(f'<td class="{cell}">{cell}</td>' for cell in cells)
        rows.append(f"<tr><td>{escape(finding.test)}</td>{marked}</tr>")
    return "<table>" + "\n".join(rows) + "</table>"


def _details(finding: Finding) -> str:
    mode, failure = finding.failures[0]
    return (
        f"<h2>{escape(finding.test)}</h2>"
        f"<p>first in mode {mode.name}: {escape(mode.finds)}</p>"
        f"<pre>{escape(failure.message)}\n{escape(failure.command)}</pre>"
    )
