# SPDX-License-Identifier: BSD-3-Clause
"""The frame and the style of report pages; ``tools/page_style.py`` copies this file.

Packages with pages must not depend on each other, so each of them has a copy.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --line: #d5dae1;
  --faint: #5d6772; --code: #f4f6f8; --bar: #2f6f8f; --second: #b4690e;
  --third: #7d5ba6; --good: #2f8f5b; --bad: #d1493f; --none: #cfd6de; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ed; --paper: #14171b;
  --line: #343b44; --faint: #9aa5b1; --code: #1d2228; --bar: #5b9fc0;
  --second: #d9943f; --third: #a98bd0; --none: #3b444e; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink);
  background: var(--paper); max-width: 1000px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: 0; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.faint { color: var(--faint); } .big { font-size: 1.3rem; margin: .5rem 0; }
code, pre { font: 13px/1.45 ui-monospace, monospace; }
pre { background: var(--code); padding: .7rem; overflow-x: auto; white-space: pre-wrap;
  overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; }
.wide { overflow-x: auto; }
td, th { text-align: right; padding: .25rem .5rem; border-bottom: 1px solid var(--line);
  font-variant-numeric: tabular-nums; }
td:first-child, th:first-child, .text { text-align: left; overflow-wrap: anywhere; }
td:first-child, th:first-child { min-width: 7rem; }
td.plot { width: 40%; min-width: 5rem; }
svg { display: block; width: 100%; fill: var(--bar); }
svg text { fill: var(--ink); font-size: 11px; }
td.plot svg { height: 14px; }
.key span { margin-right: 1rem; white-space: nowrap; } .key svg { display: inline-block;
  width: 12px; height: 12px; margin-right: .3rem; vertical-align: -1px; }
"""


def page(title: str, body: Iterable[str], *, style: str = "", script: str = "") -> str:
    """Creates a self-contained page.

    Args:
        title: The title, as text.
        body: The parts of the body, as HTML.
        style: More rules of CSS.
        script: JavaScript to run at the end, if any.
    """
    end = f"\n<script>{script}</script>" if script else ""
    return (
        "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n"
        "<meta name=viewport content='width=device-width'>\n"
        f"<title>{escape(title)}</title>\n<style>{STYLE}{style}</style>\n"
        f"<h1>{escape(title)}</h1>\n" + "\n".join(body) + f"{end}\n</html>\n"
    )


def key(colors: Iterable[tuple[str, str]]) -> str:
    """Returns a key of colors: pairs of a color of CSS and the text for it."""
    parts = (
        f"<span><svg viewBox='0 0 1 1'><rect style='fill:{color}' width=1 height=1 />"
        f"</svg>{escape(text)}</span>"
        for color, text in colors
    )
    return f"<p class=key>{''.join(parts)}</p>"


def bar(share: float) -> str:
    """Returns a bar for the share of a row, for a cell of the class ``plot``."""
    width = min(max(100 * share, 0.0), 100.0)
    return (
        "<svg viewBox='0 0 100 10' preserveAspectRatio=none>"
        f"<rect width={width:.2f} height=10 /></svg>"
    )
