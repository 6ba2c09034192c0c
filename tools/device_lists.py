# SPDX-License-Identifier: BSD-3-Clause
"""Writes docs/mechanisms/closed.md: where PyTorch checks a fixed list of devices.

Every program in docs/examples/device_lists is a row. Its comments name the place in
PyTorch, the check, its effect on the device, how a user notices, and the way in. The
place is looked up in the installed torch:

    python tools/device_lists.py          # write the page
    python tools/device_lists.py --check  # fail if the page does not match this torch

The tests of the guide run the programs.
"""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

from pages import main
from torch_tree import Tree, installed

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "mechanisms" / "closed.md"
PROGRAMS = DOCS / "examples" / "device_lists"
HERE = installed()

# ruff: noqa: E501 - lines of a page
TEXT = """\
# Hard-coded device lists

This page lists the places where PyTorch {version} checks a device type against a fixed list, for backend authors who
find a feature that works on CUDA and not on their device. A check is `x.is_cuda`, `device.type in ("cuda", "xpu")`, or
a table with one entry for each device type. Of {count} checks,

- {open} are open: they check the backend's registered name, use something that a backend can register, or take the
  device as an argument;
{planned}- {closed} are closed: a backend cannot join the list.

**Silent differences.** These checks select another path than on CUDA, without an error or a warning. Review them first.

{quiet_open}
{quiet_closed}

In the tables, *effect* is the effect on a PrivateUse1 device. *Reported by* is the symptom if the backend does not use
the way in, with a part of the message. The first column links to a program that shows the effect. It prints the text
after `# prints:` and issues the warning after `# warns:`. Without the mechanism that is its way in, it prints the text
after `# without it:` or fails with that text. The tests run every program, with and without the mechanism.

`tools/device_lists.py` writes this page. It looks up each check in the installed torch and fails if the check has
changed. For C++ source files, which PyTorch wheels do not contain, only the program is checked.
{parts}
The switches of `torch.backends`, which belong to libraries, are also closed. They have no program here.
"""

PART = """
## {name}

| program | place in PyTorch | check | effect | reported by | way in |
| --- | --- | --- | --- | --- | --- |
{rows}
"""

PARTS = (
    "Tensors and memory",
    "Layers and functions",
    "Mixed precision, gradients and optimizers",
    "Compilers",
    "Distributed",
    "Tools",
)
NOTICED = ("an error", "a warning", "nothing")
FIELDS = ("part", "place", "asks", "means", "noticed", "way")

_FIELD = re.compile(rf"^# ({'|'.join(FIELDS)}): (.*)$")
_CONTINUED = re.compile(r"^#   (.*)$")


class Row(NamedTuple):
    """One place that checks a fixed list of devices.

    Attributes:
        name: The name of its program.
        part: The section of the page.
        place: A file, and after a colon a name in it; see ``source``.
        asks: The code of the check.
        means: The effect on a PrivateUse1 device.
        noticed: How a user notices, as one of ``NOTICED``.
        way: How a backend joins the list: "mechanism" and its names, "planned" and one,
            "open" and what to do, or "closed" and why.
        message: A part of the error or warning; empty if there is none.
    """

    name: str
    part: str
    place: str
    asks: str
    means: str
    noticed: str
    way: str
    message: str = ""

    @property
    def mechanisms(self) -> list[str]:
        """The mechanisms that are the way in."""
        kind, _, names = self.way.partition(" ")
        return names.split(", ") if kind in ("mechanism", "planned") else []

    @property
    def kind(self) -> str:
        """The first word of the way."""
        return self.way.partition(" ")[0]


def read(path: Path) -> Row:
    """Returns the row that the comments of a program describe.

    Raises:
        ValueError: If a field is missing, repeated, or has an unknown value.
    """
    fields: dict[str, str] = {}
    last = ""
    text = path.read_text(encoding="utf-8")
    for line in text.splitlines():
        if match := _FIELD.match(line):
            last = match[1]
            if last in fields:
                raise ValueError(f"{path.name}: two lines '# {last}:'")
            fields[last] = match[2]
        elif last and (match := _CONTINUED.match(line)):
            fields[last] += f" {match[1]}"
        else:
            last = ""
    if missing := [field for field in FIELDS if field not in fields]:
        raise ValueError(f"{path.name}: no '# {missing[0]}:'")
    row = Row(path.stem, **fields)
    row = row._replace(message=message(row, text))
    for value, known in (
        (row.part, PARTS),
        (row.noticed, NOTICED),
        (row.kind, ("mechanism", "planned", "open", "closed")),
    ):
        if value not in known:
            raise ValueError(f"{path.name}: {value!r}: expected one of {known}")
    return row


def message(row: Row, text: str) -> str:
    """Returns a part of the error or warning that the program of a row shows.

    Args:
        row: The row.
        text: The program, with its output in comments.
    """
    if row.noticed == "nothing":
        return ""
    if row.noticed == "a warning":
        pattern = r"# warns: (.*)"
    elif row.kind == "mechanism":
        pattern = r"# without it: (.*)"
    elif match := re.search(r'^ *print\("(.*)" in str\(error\)', text, re.MULTILINE):
        return match[1]  # the program looks for this part of the error
    else:
        pattern = r"except (?:.*\n)+? *# prints: (.*)"
    match = re.search(pattern, text)
    return match[1] if match else ""


def rows() -> list[Row]:
    """Returns all rows, by part and name."""
    found = [read(path) for path in sorted(PROGRAMS.glob("*.py"))]
    return sorted(found, key=lambda row: PARTS.index(row.part))


def source(place: str, tree: Tree = HERE) -> str | None:
    """Returns PyTorch's source of a place, or None if the wheel does not have it.

    Args:
        place: A Python file and a function, class, method or variable in it, such as
            ``torch/random.py: fork_rng``; a C++ header by its include path; or another
            file of PyTorch's repository, which no wheel contains.
        tree: The torch to look in; the installed one by default.

    Raises:
        ValueError: If the file or the name does not exist.
    """
    name, _, inside = place.partition(": ")
    if name.endswith(".cpp"):
        return None
    path = tree.site / name
    is_header = name.endswith(".h")
    text = (
        tree.header(name) if is_header else path.read_text() if path.is_file() else None
    )
    if text is None:
        raise ValueError(f"{place}: torch {tree.version} lacks this file")
    if is_header or not inside:
        return text
    found = tree.find(".".join([*Path(name).with_suffix("").parts, inside]))
    if found is None or found.path != path:
        raise ValueError(f"{place}: torch {tree.version} lacks this name")
    return tree.source(found)


def check(row: Row, tree: Tree = HERE) -> None:
    """Checks that the place contains the code of the row, apart from white space.

    Raises:
        ValueError: If it does not.
    """
    text = source(row.place, tree)
    if text is not None and "".join(row.asks.split()) not in "".join(text.split()):
        raise ValueError(f"{row.name}: {row.place} does not contain {row.asks}")


def way(row: Row) -> str:
    """Returns the last cell of a row."""
    if row.kind == "mechanism":
        return ", ".join(f"[`{name}`]({name}.md)" for name in row.mechanisms)
    if row.kind == "planned":
        return ", ".join(
            f"planned: [`{name}`](planned.md#{name})" for name in row.mechanisms
        )
    return row.way.removeprefix("open ")


def line(row: Row) -> str:
    """Returns the row as Markdown."""
    file, _, inside = row.place.partition(": ")
    place = f"`{file}`" + (f", `{inside}`" if inside else "")
    noticed = row.noticed
    if row.message:
        fence = "`` " if "`" in row.message else "`"
        noticed += f": {fence}{row.message}{fence[::-1]}"
    cells = (
        f"[`{row.name}`](../examples/device_lists/{row.name}.py)",
        place,
        f"`{row.asks}`".replace("|", "\\|"),
        row.means,
        noticed,
        way(row),
    )
    return f"| {' | '.join(cells)} |"


def links(title: str, listed: list[Row]) -> str:
    """Returns an item of a list: a title, and links to the sections of the rows."""
    text = ", ".join(
        f"[`{row.name}`](#{row.part.lower().replace(',', '').replace(' ', '-')})"
        for row in listed
    )
    return textwrap.fill(
        f"- {title} ({len(listed)}): {text}.",
        width=120,
        subsequent_indent="  ",
        break_on_hyphens=False,
    )


def page() -> str:
    """Returns the whole page.

    Raises:
        ValueError: If a row does not match this torch.
    """
    all_rows = rows()
    for row in all_rows:
        check(row)
    kinds = [row.kind for row in all_rows]
    planned = kinds.count("planned")
    quiet: dict[bool, list[Row]] = {True: [], False: []}
    for row in all_rows:
        if row.noticed == "nothing" and row.kind != "planned":
            quiet[row.kind == "closed"].append(row)
    parts = [
        PART.format(
            name=part,
            rows="\n".join(line(row) for row in all_rows if row.part == part),
        )
        for part in PARTS
    ]
    return TEXT.format(
        version=HERE.version.split("+")[0],
        count=len(all_rows),
        open=kinds.count("mechanism") + kinds.count("open"),
        planned=f"- {planned} need a [planned](planned.md) mechanism;\n"
        * bool(planned),
        closed=kinds.count("closed"),
        quiet_open=links("Open", quiet[False]),
        quiet_closed=links("Closed", quiet[True]),
        parts="".join(parts),
    )


if __name__ == "__main__":
    sys.exit(main(__doc__.splitlines()[0], PAGE, page))
