# SPDX-License-Identifier: BSD-3-Clause
"""Checks that every local link of the guide has a text and a target that exists.

    python tools/check_links.py               checks the Markdown, as GitHub shows it
    python tools/check_links.py build/docs    checks a built site

Links to other sites are not checked.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

from workspace import ROOT

_FENCE = re.compile(r"^(`{3,}|~{3,})[^\n]*\n.*?^\1[ \t]*$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
_LINK = re.compile(r"\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")
_HEADING = re.compile(r"^#{1,6} (.+?)\s*#*$", re.MULTILINE)
_OTHER_SITE = re.compile(r"[a-z][a-z+.-]*:|//")


def blocks_removed(text: str) -> str:
    """Returns Markdown without fenced code and comments; line numbers do not change."""

    def empty(match: re.Match[str]) -> str:
        return "\n" * match[0].count("\n")

    return _COMMENT.sub(empty, _FENCE.sub(empty, text))


@cache
def anchors(page: Path) -> frozenset[str]:
    """Returns the anchors of a page's headings, as GitHub generates them."""
    found: set[str] = set()
    for heading in _HEADING.findall(blocks_removed(page.read_text(encoding="utf-8"))):
        text = _LINK.sub(r"\1", heading).lower()
        name = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        number, anchor = 0, name
        while anchor in found:
            number += 1
            anchor = f"{name}-{number}"
        found.add(anchor)
    return frozenset(found)


def check_page(page: Path) -> Iterator[str]:
    """Yields one sentence for each wrong link of a Markdown page."""

    def hide(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", "x", match[0])  # code counts as the text of a link

    text = _CODE.sub(hide, blocks_removed(page.read_text(encoding="utf-8")))
    for match in _LINK.finditer(text):
        where = f"{page}:{text.count(chr(10), 0, match.start()) + 1}"
        target = match[2]
        if not match[1].strip():
            yield f"{where}: the link to {target} has no text"
        if _OTHER_SITE.match(target):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / unquote(name)).resolve() if name else page
        if not path.exists():
            yield f"{where}: there is no {target}"
        elif anchor and path.suffix == ".md" and anchor not in anchors(path):
            yield f"{where}: {path.name} has no heading #{anchor}"


class _Html(HTMLParser):
    """Collects the link targets and the anchors of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.ids: set[str] = set()

    def handle_starttag(self, _tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value}
        self.ids.update(given[name] for name in ("id", "name") if name in given)
        self.targets += [given[name] for name in ("href", "src") if name in given]


@cache
def read_html(path: Path) -> tuple[tuple[str, ...], frozenset[str]]:
    """Returns the link targets and the anchors of a built page."""
    parser = _Html()
    parser.feed(path.read_text(encoding="utf-8"))
    return tuple(parser.targets), frozenset(parser.ids)


def check_site(site: Path) -> Iterator[str]:
    """Yields one sentence for each wrong link of a built site.

    Raises:
        FileNotFoundError: If the folder has no ``index.html``.
    """
    (site / "index.html").stat()
    for page in sorted(site.rglob("*.html")):
        for target in read_html(page)[0]:
            if _OTHER_SITE.match(target):
                continue
            name, _, anchor = target.partition("#")
            name = unquote(name.partition("?")[0])
            path = (page.parent / name).resolve() if name else page.resolve()
            if path.is_dir():
                path /= "index.html"
            if not path.exists():
                yield f"{page}: there is no {target}"
                continue
            wanted = unquote(anchor) if path.suffix == ".html" else ""
            if wanted and wanted not in read_html(path)[1]:
                yield f"{page}: {target} is not an anchor of the page"


def pages() -> list[Path]:
    """Lists the Markdown pages of the guide and of other folders."""
    folders = ("docs", "examples", "benchmarks", "packages")
    inner = [page for name in folders for page in (ROOT / name).rglob("*.md")]
    return sorted([*ROOT.glob("*.md"), *inner])


def main() -> int:
    """Prints the wrong links; returns the exit status."""
    if len(sys.argv) > 1:
        problems = list(check_site(Path(sys.argv[1])))
    else:
        problems = [text for page in pages() for text in check_page(page)]
    print("\n".join(problems) or "every local link has a target")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
