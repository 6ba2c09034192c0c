# SPDX-License-Identifier: BSD-3-Clause
"""The report of a run as a self-contained page."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

from . import page_style
from .expectations import BAD
from .mechanisms import MECHANISMS
from .ranking import Finding, rank, score, scores
from .summary import bits, percent
from .texts import explain

_OUTCOMES = ("passed", "failed", "crashed", "hung", "blocked", "skipped")
_STYLE = """
:root { --crashed: #7d1128; --blocked: #8a94a0; }
.passed { fill: var(--good); } .failed { fill: var(--bad); }
.crashed { fill: var(--crashed); } .hung { fill: var(--second); }
.blocked { fill: var(--blocked); } .skipped { fill: var(--none); }
details { border-bottom: 1px solid var(--line); padding: .35rem 0;
  content-visibility: auto; contain-intrinsic-size: auto 2rem; }
summary { cursor: pointer; overflow-wrap: anywhere; }
ol.findings > li { margin-bottom: 1rem; }
input { font: inherit; width: 100%; padding: .4rem; box-sizing: border-box; }
"""
_SCRIPT = """
const rows = [...document.querySelectorAll("#failures details")];
const shown = document.getElementById("shown");
function filter(event) {
  const words = event.target.value.toLowerCase().split(/\\s+/).filter(Boolean);
  let count = 0;
  for (const row of rows) {
    const text = row.dataset.text;
    row.hidden = !words.every(word => text.includes(word));
    count += !row.hidden;
  }
  shown.textContent = `${count} of ${rows.length}`;
}
document.getElementById("filter")?.addEventListener("input", filter);
"""


def page(report: dict[str, Any]) -> str:
    """Creates the page of a report with expectations applied."""
    title = f"Conformance of {report['device']}"
    return page_style.page(title, _body(report), style=_STYLE, script=_SCRIPT)


def _body(report: dict[str, Any]) -> Iterator[str]:
    about = (
        f"{report['device_name']}, level {report['level']}, torch {report['torch']}, "
        f"Python {report['python']}, {report['seconds']:.0f} s, seed {report['seed']}"
    )
    yield f"<p class=faint>{escape(about)}</p>"
    same, passed = bits(report)
    if passed:
        yield (
            f"<p>Of {passed} checks of values that passed, {same} gave the CPU's bits "
            f"({percent(same / passed)}); the others are within PyTorch's tolerances."
        )
    yield "<h2>Suites</h2>"
    yield from _table(scores(report, "suite"), "suite")
    findings = rank(report)
    yield "<h2>Recommended fixes</h2>"
    if findings:
        yield "<p class=faint>What most users need comes first.</p>"
        yield "<ol class=findings>"
        yield from (_finding(each) for each in findings)
        yield "</ol>"
    else:
        yield "<p>Nothing failed that was not expected to.</p>"
    yield "<h2>Mechanisms</h2>"
    titles = {MECHANISMS[k].title: v for k, v in scores(report, "mechanism").items()}
    yield from _table(titles, "mechanism")
    yield from _skips(report)
    yield from _failures(report)


def _table(counts: dict[str, dict[str, int]], kind: str) -> Iterator[str]:
    used = [o for o in _OUTCOMES if any(c.get(o) for c in counts.values())]
    yield "<p class=key>" + "".join(
        f"<span><svg viewBox='0 0 1 1'><rect class={o} width=1 height=1 /></svg>{o}"
        "</span>"
        for o in used
    )
    head = "".join(f"<th>{o}</th>" for o in used)
    yield "<div class=wide><table>"
    yield f"<tr><th>{kind}<th>score{head}<th></tr>"
    for name, count in counts.items():
        cells = "".join(f"<td>{count.get(o) or ''}</td>" for o in used)
        yield (
            f"<tr><td>{escape(name)}</td><td>{percent(score(count))}</td>{cells}"
            f"<td class=plot>{_bar(name, count)}</td></tr>"
        )
    yield "</table></div>"


def _bar(name: str, counts: dict[str, int]) -> str:
    """Returns a bar of outcomes, in which every nonzero count is visible."""
    used = [o for o in _OUTCOMES if counts.get(o)]
    widths = {o: max(counts[o] / counts["all"] * 100, 1.0) for o in used}
    scale, at, parts = 100 / sum(widths.values()), 0.0, []
    for outcome, width in widths.items():
        parts.append(
            f"<rect class={outcome} x={at * scale:.2f} width={width * scale:.2f} "
            "height=10 />"
        )
        at += width
    told = ", ".join(f"{counts[o]} {o}" for o in widths)
    label = escape(f"{name}: {told}", quote=True)
    return (
        f"<svg viewBox='0 0 100 10' preserveAspectRatio=none role=img "
        f'aria-label="{label}">{"".join(parts)}</svg>'
    )


def _finding(finding: Finding) -> str:
    case = finding.cases[0]
    known = explain(case["message"])
    parts = [
        f"<li><b>{escape(finding.title)}</b>",
        " <span class=faint>(may follow from what is above)</span>" * finding.doubtful,
        f"<br>needed by {finding.users:.0%} of programs; {finding.count}, "
        f"such as <code>{escape(case['name'])}</code>: {escape(case['title'])}",
        f"<br>{case['outcome']}: {escape(case['message'].splitlines()[0][:300])}",
    ]
    if known is not None:
        parts.append(
            f"<br>this text means that <code>{escape(known[0])}</code> is missing: "
            f"<code>{escape(known[1])}</code>"
        )
    parts.append(
        f"<br>read <code>{escape(finding.page)}</code> in the guide of torch-openreg"
    )
    if case.get("program"):
        parts.append(
            "<details><summary>program</summary>"
            f"<pre>{escape(case['program'])}</pre></details>"
        )
    return "".join(parts) + "</li>"


def _skips(report: dict[str, Any]) -> Iterator[str]:
    reasons: dict[str, int] = {}
    for case in report["cases"]:
        if case["outcome"] == "skipped":
            reasons[case["message"]] = reasons.get(case["message"], 0) + 1
    if reasons:
        yield "<h2>Skipped</h2><ul>"
        for reason, count in reasons.items():
            yield f"<li>{count}: {escape(reason)}</li>"
        yield "</ul>"


def _failures(report: dict[str, Any]) -> Iterator[str]:
    failed = [c for c in report["cases"] if c["outcome"] in BAD]
    if not failed:
        return
    yield f"<h2>Failures</h2><p class=faint><span id=shown>{len(failed)}</span></p>"
    yield "<input id=filter type=search placeholder='words in names and messages' />"
    yield "<div id=failures>"
    for case in failed:
        message = case.get("message", "")
        text = escape(f"{case['name']} {message[:300]}".lower(), quote=True)
        expected = (
            f"<p>expected: {escape(case['expected'])}" if "expected" in case else ""
        )
        program = case.get("program", "")
        yield (
            f'<details data-text="{text}"><summary>{case["outcome"]}: '
            f"<code>{escape(case['name'])}</code></summary>"
            f"<p>{escape(case['title'])}{expected}<pre>{escape(message)}</pre>"
            + (f"<pre>{escape(program)}</pre>" if program else "")
            + "</details>"
        )
    yield "</div>"
