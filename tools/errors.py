# SPDX-License-Identifier: BSD-3-Clause
"""Writes docs/errors.md: error messages, and the mechanism whose absence causes each one.

The messages come from the programs in docs/examples/without and docs/examples/planned.
The tests run each program with and without its mechanism and compare the output:

    python tools/errors.py          # write the page
    python tools/errors.py --check  # fail if the page does not match the programs
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
# From an error to the missing mechanism

Use this page to find the extension point that your backend lacks. Search for a part of your error message that contains
no operator name, such as `Could not run`. The messages here contain the device name `openreg`; yours contain the name
of your device. `tools/errors.py` generates the page from the programs in `docs/examples`, which the tests run with and
without each mechanism.

## Errors

| error message | missing mechanism | interface in PyTorch |
| --- | --- | --- |
{errors}

## No error, but a different result

Without the mechanism, these programs run to the end but print a different result.

| output without the mechanism | output with the mechanism | missing mechanism | interface in PyTorch |
| --- | --- | --- | --- |
{quiet}
"""

_PROBLEM = re.compile(
    r"Error\b|Exception|InvalidBackend|not (?:implemented|supported|enabled|registered)"
    r"|has no attribute|at the same time for|Please register|exit code: -|not a \w+\."
)


class Failure(NamedTuple):
    """The result of a program without its mechanism.

    Attributes:
        name: The mechanism.
        text: The line that the program prints.
        usual: The output with the mechanism.
        planned: Whether the mechanism is only planned.
    """

    name: str
    text: str
    usual: str
    planned: bool


def comments(source: str, label: str) -> list[str]:
    """Returns the texts after a label in the comments of a program."""
    return re.findall(rf"^ *# {label}: (.*)$", source, re.MULTILINE)


def failures() -> list[Failure]:
    """Reads the programs.

    Raises:
        ValueError: If a program has no comment about its failure.
    """
    found = []
    for folder, label in (("without", "without it"), ("planned", "(?:fails|warns)")):
        for path in sorted((DOCS / "examples" / folder).glob("*.py")):
            source = path.read_text(encoding="utf-8")
            planned = folder == "planned"
            texts = comments(source, label)
            if not texts and planned:
                continue  # nothing fails: the planned page covers it
            if not texts:
                raise ValueError(f"{path.name} has no comment '# without it: ...'")
            name = path.stem.removeprefix("no_")
            usual = "" if planned else " ".join(comments(source, "prints"))
            found += [Failure(name, text, usual, planned) for text in texts]
    return found


def code(text: str) -> str:
    """Formats a text as code for a table cell."""
    text = text.replace("|", r"\|")
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def row(failure: Failure, known: dict[str, Mechanism], *columns: str) -> str:
    """Returns a row: the columns, the mechanism and its interface in PyTorch."""
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
