# SPDX-License-Identifier: BSD-3-Clause
"""Writes docs/errors.md: from the text of an error to the mechanism that is missing.

The texts come from the programs in docs/examples/without and docs/examples/planned. The
tests run these with and without each mechanism, and compare:

    python tools/errors.py          # write the page
    python tools/errors.py --check  # fail if the page is not that of the programs
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import NamedTuple

from pages import main

from torch_openreg.openreg import Mechanism, mechanisms

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "errors.md"

# ruff: noqa: E501 - lines of a page
TEXT = """\
# From an error to the mechanism

A backend that lacks a mechanism fails with one of these texts, or gives another answer. `tools/errors.py` writes this
page from the programs in `docs/examples`, which the tests run without each mechanism; a name of a device stands where
yours will. Search the page for a part of your message without names of operators, such as `Could not run`.

## Errors

| text | missing mechanism | what it is |
| --- | --- | --- |
{errors}

## No error

These programs end, with another answer than with the mechanism. The second column is what the program prints.

| without the mechanism | with it | missing mechanism | what it is |
| --- | --- | --- | --- |
{quiet}
"""

_PROBLEM = re.compile(
    r"Error\b|Exception|InvalidBackend|not (?:implemented|supported|enabled|registered)"
    r"|has no attribute|at the same time for|Please register|exit code: -|not a \w+\."
)


class Failure(NamedTuple):
    """What a program shows without a mechanism.

    Attributes:
        name: The mechanism.
        text: The line that it prints.
        usual: What it prints with the mechanism.
        planned: Whether the mechanism is not there yet.
    """

    name: str
    text: str
    usual: str
    planned: bool


def said(source: str, what: str) -> list[str]:
    """Returns what the comments of a program say after ``what``."""
    return re.findall(rf"^ *# {what}: (.*)$", source, re.MULTILINE)


def failures() -> list[Failure]:
    """Reads the programs.

    Raises:
        ValueError: If one does not say what happens without its mechanism.
    """
    found = []
    for folder, what in (("without", "without it"), ("planned", "(?:fails|warns)")):
        for path in sorted((DOCS / "examples" / folder).glob("*.py")):
            source = path.read_text(encoding="utf-8")
            planned = folder == "planned"
            texts = said(source, what)
            if not texts and planned:
                continue  # nothing fails: the planned page says what is missing
            if not texts:
                raise ValueError(f"{path.name} does not say what fails")
            name = path.stem.removeprefix("no_")
            usual = "" if planned else " ".join(said(source, "prints"))
            found += [Failure(name, text, usual, planned) for text in texts]
    return found


def code(text: str) -> str:
    """Returns a text as code in a cell of a table."""
    text = text.replace("|", r"\|")
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def row(failure: Failure, known: dict[str, Mechanism], *columns: str) -> str:
    """Returns a row: the columns, and the mechanism with its name in PyTorch."""
    place = f"planned.md#{failure.name}" if failure.planned else f"{failure.name}.md"
    link = f"[`{failure.name}`](mechanisms/{place})"
    planned = ", planned here" if failure.planned else ""
    cells = (*columns, link + planned, code(known[failure.name].summary))
    return f"| {' | '.join(cells)} |"


def page() -> str:
    """Returns the whole page."""
    known = {mechanism.name: mechanism for mechanism in mechanisms()}
    errors: list[tuple[str, str]] = []
    quiet: list[str] = []
    for failure in failures():
        if _PROBLEM.search(failure.text):
            line = row(failure, known, code(failure.text))
            errors.append((failure.text.lower(), line))
        else:
            columns = (code(failure.text), code(failure.usual))
            quiet.append(row(failure, known, *columns))
    return TEXT.format(
        errors="\n".join(line for _, line in sorted(errors)), quiet="\n".join(quiet)
    )


if __name__ == "__main__":
    sys.exit(main((__doc__ or "").splitlines()[0], PAGE, page))
