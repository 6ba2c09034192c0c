# SPDX-License-Identifier: BSD-3-Clause
"""Writes the generated parts of the pages on mechanisms.

The table of docs/mechanisms/index.md comes from the mechanisms of the installed
packages, and from docs/mechanisms/hardware.toml, which describes the counterparts of
mechanisms on hardware. Each page gets a picture and a paragraph from that file, between
two comments. The text around them is written by hand and does not change:

    python tools/mechanisms.py          # write the generated parts
    python tools/mechanisms.py --check  # fail if a part is not current
"""

from __future__ import annotations

import re
import sys
import textwrap
import tomllib
from pathlib import Path
from typing import NamedTuple

from pages import main_of_all

from torch_openreg.openreg import Mechanism, mechanisms

FOLDER = Path(__file__).parents[1] / "docs" / "mechanisms"
PAGE = FOLDER / "index.md"
TABLE = FOLDER / "hardware.toml"
HEAD = """\
| name | PyTorch API | without it | for hardware | source, in `packages` |
| --- | --- | --- | --- | --- |
"""
CARRIES = ("copy", "adapt", "simulation only")
BEGIN, END = "<!-- tools/mechanisms.py: begin -->\n", "<!-- end -->\n"


class Hardware(NamedTuple):
    """The counterpart of a mechanism on hardware.

    Attributes:
        carries: One of ``CARRIES``.
        hardware: The behavior of a device with its own memory and kernels.
        calls: The four boxes of the picture: the program, PyTorch, the registered
            function and the runtime.
    """

    carries: str
    hardware: str
    calls: tuple[str, str, str, str]


def read() -> dict[str, Hardware]:
    """Reads the table.

    Raises:
        ValueError: If an entry lacks a field or has a wrong field.
    """
    found = {}
    for name, entry in tomllib.loads(TABLE.read_text(encoding="utf-8")).items():
        if entry.keys() != set(Hardware._fields) or entry["carries"] not in CARRIES:
            raise ValueError(f"{TABLE.name}: {name} has missing or wrong fields")
        program, pytorch, ours, runtime = entry["calls"]
        calls = (program, pytorch, ours, runtime)
        found[name] = Hardware(entry["carries"], entry["hardware"], calls)
    return found


def line(mechanism: Mechanism, hardware: Hardware | None) -> str:
    """Returns the row of a mechanism."""
    name = mechanism.name
    planned = hardware is None
    cells = (
        f"[`{name}`]({f'planned.md#{name}' if planned else f'{name}.md'})",
        f"`{mechanism.summary}`",
        mechanism.without,
        hardware.carries if hardware else "",
        "planned" if planned else f"`{mechanism.source}`",
    )
    return f"| {' | '.join(cells)} |\n"


def picture(mechanism: Mechanism, calls: tuple[str, str, str, str]) -> str:
    """Returns the picture of a mechanism, as a Mermaid fence."""
    where = mechanism.source.partition("/")[0]
    titles = ("your program", "PyTorch", where, "libopenreg")
    boxes = [
        f'  {letter}["<b>{title}</b><br/>{text}"]'
        for letter, title, text in zip(
            "abcd", titles, (call.replace("\n", "<br/>") for call in calls), strict=True
        )
    ]
    title = f"  accTitle: {mechanism.name}: from your program to the runtime"
    lines = [
        "```mermaid",
        "flowchart TB",
        title,
        *boxes,
        "  a --> b --> c --> d",
        "```",
    ]
    return "\n".join(lines) + "\n"


def part(mechanism: Mechanism, hardware: Hardware) -> str:
    """Returns the text between the two comments of a page."""
    kind = hardware.carries[0].upper() + hardware.carries[1:]
    text = textwrap.fill(
        f"**For hardware: {kind}.** {hardware.hardware}",
        width=120,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return f"{BEGIN}\n{picture(mechanism, hardware.calls)}\n{text}\n\n{END}"


def replaced(text: str, pattern: str, new: str, path: Path, what: str) -> str:
    """Replaces the only match of a pattern.

    Raises:
        ValueError: If the pattern does not match exactly once.
    """
    parts = re.split(pattern, text, flags=re.MULTILINE | re.DOTALL)
    if len(parts) != 2:
        raise ValueError(f"{path} has {len(parts) - 1} {what}, not one")
    return new.join(parts)


def page() -> str:
    """Returns the page with the table of mechanisms.

    Raises:
        ValueError: If the page does not have exactly one table with the same head.
    """
    known = read()
    table = HEAD + "".join(line(m, known.get(m.name)) for m in mechanisms())
    pattern = rf"^{re.escape(HEAD)}(?:\|[^\n]*\n)*"
    text = PAGE.read_text(encoding="utf-8")
    return replaced(text, pattern, table, PAGE, "tables of mechanisms")


def pages() -> dict[Path, str]:
    """Returns the text of every page with a generated part.

    Raises:
        ValueError: If a page lacks the two comments, or the table is not complete.
    """
    made = [m for m in mechanisms() if m.state != "planned"]
    known = read()
    if known.keys() != {m.name for m in made}:
        names = sorted(known.keys() ^ {m.name for m in made})
        raise ValueError(f"{TABLE.name} or the code lacks {', '.join(names)}")
    texts = {PAGE: page()}
    for mechanism in made:
        path = FOLDER / f"{mechanism.name}.md"
        texts[path] = replaced(
            path.read_text(encoding="utf-8"),
            f"^{re.escape(BEGIN)}.*?^{re.escape(END)}",
            part(mechanism, known[mechanism.name]),
            path,
            "places for its picture",
        )
    return texts


if __name__ == "__main__":
    sys.exit(main_of_all((__doc__ or "").splitlines()[0], pages))
