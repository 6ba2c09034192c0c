# SPDX-License-Identifier: BSD-3-Clause
r"""Writes the quotations of code in the guide.

A quotation is a comment that names a file and selects lines. Below it, this tool writes
a link to the file and the lines. GitHub and the built site then show the same code, and
nobody copies it by hand:

    python tools/quotes.py          # write all quotations
    python tools/quotes.py --check  # fail if a quotation does not match its file

To add a quotation, write the comment, or a ``{literalinclude}`` block, which the tool
converts:

    <!-- quote: ../packages/openreg-aten/csrc/call/submit.cpp
    start-after: [docs: submit]
    end-before: [docs: end]
    -->

Without options, the tool quotes the whole file. ``start-at``, ``start-after``,
``end-at`` and ``end-before`` are parts of lines. ``lines: 4-`` is the number of the
first line. A start after an end selects more lines, from further down in the file.
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from workspace import ROOT

OPTIONS = ("start-at", "start-after", "end-at", "end-before", "lines")
LANGUAGES = {
    ".c": "c",
    ".cmake": "cmake",
    ".cpp": "cpp",
    ".def": "cpp",
    ".h": "cpp",
    ".ini": "ini",
    ".json": "json",
    ".md": "markdown",
    ".patch": "diff",
    ".py": "python",
    ".pyi": "python",
    ".sh": "sh",
    ".toml": "toml",
    ".txt": "text",
    ".yaml": "yaml",
    ".yml": "yaml",
    "CMakeLists.txt": "cmake",
}

_QUOTE = re.compile(
    r"^<!-- quote: (?P<file>\S+)(?P<options>(?:\n[a-z-]+: .*)*)\s*-->\n"
    r"(?P<written>\n\[`[^`\n]+`\]\([^)\n]+\)\n\n(?P<fence>`{3,})\w*\n(?:.*\n)*?(?P=fence)\n)?",
    re.MULTILINE,
)
_INCLUDE = re.compile(
    r"^```\{literalinclude\} (?P<file>\S+)\n(?P<options>(?::.*\n)*)```\n", re.MULTILINE
)
# Marks inside of the quoted lines belong to other quotations.
_MARK = re.compile(r" *(?://|#) \[(?:docs: [\w-]+|step \w+)\]")


class Quote(NamedTuple):
    """A quotation.

    Attributes:
        file: The path of the quoted file, from the folder of the page.
        options: The options that select its lines: names of ``OPTIONS`` and values.
    """

    file: str
    options: list[tuple[str, str]]

    @property
    def comment(self) -> str:
        """The comment that names the file and the lines."""
        lines = [f"<!-- quote: {self.file}"]
        lines += [f"{name}: {text}" for name, text in self.options]
        return f"{lines[0]} -->\n" if len(lines) == 1 else "\n".join(lines) + "\n-->\n"


def parse(match: re.Match[str]) -> Quote:
    """Reads a comment or an include.

    Raises:
        ValueError: If it has an unknown option.
    """
    found = re.findall(r"^:?([a-z-]+): (.*)$", match["options"], re.MULTILINE)
    options = []
    for name, text in found:
        if name in ("language", "dedent"):
            continue  # the tool sets the language and always removes the margin
        if name not in OPTIONS:
            raise ValueError(f"unknown option {name} in the quote of {match['file']}")
        quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
        options.append((name, text[1:-1] if quoted else text))
    return Quote(match["file"], options)


def quotes(text: str) -> Iterator[Quote]:
    """Yields the quotations of a page, in order."""
    found = [*_QUOTE.finditer(text), *_INCLUDE.finditer(text)]
    yield from map(parse, sorted(found, key=lambda match: match.start()))


def selected(quote: Quote, folder: Path) -> str:
    """Returns the quoted lines, without a margin and without marks.

    Args:
        quote: The quotation.
        folder: The folder of the page.

    Raises:
        ValueError: If the file or a line does not exist, or if no lines are selected.
    """
    path = folder / quote.file
    if not path.is_file():
        raise ValueError(f"the quoted file {quote.file} does not exist")
    lines = path.read_text(encoding="utf-8").splitlines()
    first = 0

    def find(text: str) -> int:
        for number in range(first, len(lines)):
            if text in lines[number]:
                return number
        raise ValueError(f"{quote.file} has no {text!r} from line {first + 1} on")

    parts: list[str] = []
    selecting = True  # until an end
    for name, text in [*quote.options, ("end", "")]:
        if name == "lines":
            first = int(text.removesuffix("-")) - 1
        elif name.startswith("start"):
            first, selecting = find(text) + (name == "start-after"), True
        elif text or selecting:
            last = find(text) + (name == "end-at") if text else len(lines)
            kept = [line for line in lines[first:last] if not _MARK.fullmatch(line)]
            parts.append("\n".join(kept).strip("\n"))
            first, selecting = last, False
    between = "\n\n\n" if path.suffix == ".py" else "\n\n"
    code = textwrap.dedent(between.join(parts))
    code = re.sub(r"\n{4,}", "\n\n\n", code).strip("\n")  # around omitted marks
    if not code.strip():
        raise ValueError(f"{quote.file}: {quote.options} select no lines")
    return code


def written(quote: Quote, page: Path) -> str:
    """Returns the text of a quotation on its page: comment, link and code."""
    code = selected(quote, page.parent)
    path = (page.parent / quote.file).resolve()
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall(r"`{3,}|$", code)))
    language = LANGUAGES.get(path.name, LANGUAGES.get(path.suffix, "text"))
    caption = f"[`{path.relative_to(ROOT)}`]({quote.file})"
    return f"{quote.comment}\n{caption}\n\n{fence}{language}\n{code}\n{fence}\n"


def updated(text: str, page: Path) -> str:
    """Returns the text of a page with current quotations.

    Args:
        text: The text.
        page: The path of the page.

    Raises:
        ValueError: If a quotation is wrong; the message names the page.
    """

    def write(match: re.Match[str]) -> str:
        return written(parse(match), page)

    try:
        return _QUOTE.sub(write, _INCLUDE.sub(write, text))
    except ValueError as error:
        raise ValueError(f"{page.relative_to(ROOT)}: {error}") from None


def pages() -> list[Path]:
    """Lists the pages that may have quotations: the guide and the README files."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    return sorted([*found, *(ROOT / "examples").rglob("*.md")])


def main() -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    check: bool = parser.parse_args().check
    status = 0
    for page in pages():
        text = page.read_text(encoding="utf-8")
        current = updated(text, page)
        if current == text:
            continue
        if check:
            where = page.relative_to(ROOT)
            print(f"{where} is not current: run python tools/quotes.py")
            status = 1
        else:
            page.write_text(current, encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main())
