# SPDX-License-Identifier: BSD-3-Clause
"""Checks docs/promises.md and the tables of README.md.

    python tools/promises.py

A promise is a row of a table: its number, one sentence, and links to what shows it, or
``[test pending]``. Numbers are unique and ascending, and begin with the number of their
section. A linked file exists, and contains the test or the benchmark row that the link
is followed by. Each row of a table of README.md links to a promise by its number.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from check_links import blocks_removed
from workspace import ROOT

PAGE = "docs/promises.md"
PENDING = "[test pending]"

_SECTION = re.compile(r"## (\d+)\. ")
_ROW = re.compile(r"\| (\d+)\.(\d+) \| (.*) \| (.*) \|")
# A link, and the names behind it.
_PROOF = re.compile(r"\[[^\]]+\]\(([^)]+)\)((?::|,) `[^`]+`(?:, `[^`]+`)*)?")
_REFERENCE = re.compile(r"\[(\d+\.\d+)\]\(docs/promises\.md#(\d+)-[\w-]+\)")


def defines(file: Path, name: str) -> bool:
    """Returns whether a file has a test, or a benchmark a row, of a name."""
    text = file.read_text(encoding="utf-8")
    if name.startswith("test_"):
        return bool(re.search(rf"^ *(?:async )?def {re.escape(name)}\(", text, re.M))
    if file.suffix == ".cpp":
        suite, _, test = name.partition(".")
        return bool(re.search(rf"^TEST(?:_[FP])?\({suite}, {test}\)", text, re.M))
    return f'"{name}"' in text


def check_proofs(proofs: str, folder: Path) -> Iterator[str]:
    """Yields a sentence for each link that shows nothing.

    Args:
        proofs: The last cell of a promise.
        folder: The folder of the page.
    """
    if proofs == PENDING:
        return
    found = list(_PROOF.finditer(proofs))
    if not found or _PROOF.sub("", proofs).strip(", "):
        yield f"{proofs!r} is not a list of links, nor {PENDING}"
    for target, names in (match.groups() for match in found):
        file = folder / target
        if not file.is_file():
            yield f"there is no file {target}"
            continue
        for name in re.findall(r"`([^`]+)`", names or ""):
            if not defines(file, name):
                yield f"{target} has no {name}"


def check_page(page: Path) -> tuple[set[str], list[str]]:
    """Returns the numbers of a page, and a sentence for each problem."""
    numbers: set[str] = set()
    problems = []
    section, last = 0, (0, 0)
    for line, text in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if match := _SECTION.match(text):
            section = int(match[1])
        if not text.startswith("|") or not text[2:3].isdigit():
            continue
        where = f"{page.name}:{line}"
        row = _ROW.fullmatch(text)
        if row is None:
            problems.append(f"{where}: the row is not: number, sentence, links")
            continue
        number = f"{row[1]}.{row[2]}"
        place = (int(row[1]), int(row[2]))
        if place <= last:
            problems.append(f"{where}: {number} comes after {last[0]}.{last[1]}")
        if place[0] != section:
            problems.append(f"{where}: {number} is in section {section}")
        if not re.fullmatch(r"(?:[^.]|\.(?! ))+\.", row[3]):
            problems.append(f"{where}: {number} is not one sentence")
        found = check_proofs(row[4], page.parent)
        problems += [f"{where}: {number}: {problem}" for problem in found]
        numbers.add(number)
        last = max(last, place)
    return numbers, problems


def check_readme(readme: Path, numbers: set[str]) -> Iterator[str]:
    """Yields a sentence for each table row without a promise of these numbers."""
    text = blocks_removed(readme.read_text(encoding="utf-8"))
    lines = text.splitlines()
    for line, row in enumerate(lines, 1):
        is_header = line < len(lines) and re.match(r"\|[ :|-]+\|$", lines[line])
        if not row.startswith("|") or not set(row) - set("|-: ") or is_header:
            continue
        where = f"{readme.name}:{line}"
        references = _REFERENCE.findall(row)
        if not references:
            yield f"{where}: the row links to no promise"
        for number, section in references:
            if number not in numbers:
                yield f"{where}: there is no promise {number}"
            elif number.partition(".")[0] != section:
                yield f"{where}: promise {number} is not in section {section}"


def main(root: Path = ROOT) -> int:
    """Prints the problems; returns the exit status."""
    numbers, problems = check_page(root / PAGE)
    problems += check_readme(root / "README.md", numbers)
    print("\n".join(problems) or f"{len(numbers)} promises, all with their links")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
