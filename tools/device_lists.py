# SPDX-License-Identifier: BSD-3-Clause
"""Writes docs/mechanisms/closed.md: where PyTorch asks for a list of devices.

Every program in docs/examples/device_lists is a row. Its comments say which place in
PyTorch, what that asks for, what it means for the device, how a user notices, and the
way out. The place is looked up in the torch that is installed:

    python tools/device_lists.py          # write the page
    python tools/device_lists.py --check  # fail if the page is not that of this torch

The tests of the guide run the programs.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import NamedTuple

import torch
from pages import main
from quotes import updated

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "mechanisms" / "closed.md"
PROGRAMS = DOCS / "examples" / "device_lists"
TORCH = Path(torch.__file__).parent

# ruff: noqa: E501 - lines of a page
TEXT = """\
# What is closed

PyTorch {version} asks for the type of a device in many places: `x.is_cuda`, `device.type in ("cuda", "xpu")`, a table by
device types. A list has room for a PrivateUse1 device if it asks for the name of the backend, if something can be
registered, or if the caller can say which device is meant. The other lists are closed: a backend cannot join them.

{count} such places follow, with what they mean for this device: {open} are open, with the way in, {planned} wait for a
[planned](planned.md) mechanism, and {closed} are closed. The places that nothing notices deserve the most care:
PyTorch goes another way than for a CUDA device, and no error tells. That is so for {quiet_open} open and {quiet} closed ones.

`tools/device_lists.py` writes this page. It reads the place in the torch that is installed, and fails if the place no
longer asks for what stands here; the C++ sources are not part of the wheel, so there the program alone shows it. The
tests run every [program](#programs). For a way in by a mechanism they also run it without the mechanism.

"Noticed by" says what tells a user who does not know of the list, or of a backend without the mechanism.
{parts}
Closed without a program are the switches of `torch.backends`, which belong to libraries.

## Programs

A program prints what follows `# prints:` and warns as `# warns:` says. Without the mechanism that is the way in,
it prints or fails with what follows `# without it:`.
{programs}"""

PART = """
## {name}

| place in PyTorch | asks for | what it means | noticed by | way in |
| --- | --- | --- | --- | --- |
{rows}
"""

PROGRAM = """
### {name}

```{{literalinclude}} ../examples/device_lists/{name}.py
:start-at: "import "
```
"""

PARTS = (
    "Tensors and memory",
    "Layers and functions",
    "Mixed precision, gradients and optimizers",
    "Compilers",
    "Several processes",
    "Tools",
)
NOTICED = ("an error", "a warning", "nothing")
FIELDS = ("part", "place", "asks", "means", "noticed", "way")

_FIELD = re.compile(rf"^# ({'|'.join(FIELDS)}): (.*)$")
_CONTINUED = re.compile(r"^#   (.*)$")


class Row(NamedTuple):
    """One place that asks for a list of devices.

    Attributes:
        name: The name of its program.
        part: The section of the page.
        place: A file, and after a colon a name in it; see ``source``.
        asks: What stands there.
        means: What that means for a PrivateUse1 device.
        noticed: How a user notices, as one of ``NOTICED``.
        way: How a backend joins the list: "mechanism" and its names, "planned" and one,
            "open" and what to do, or "closed" and why.
    """

    name: str
    part: str
    place: str
    asks: str
    means: str
    noticed: str
    way: str

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
    """Returns the row that the comments of a program are.

    Raises:
        ValueError: If a field is missing, twice there, or has no known value.
    """
    fields: dict[str, str] = {}
    last = ""
    for line in path.read_text(encoding="utf-8").splitlines():
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
    for value, known in (
        (row.part, PARTS),
        (row.noticed, NOTICED),
        (row.kind, ("mechanism", "planned", "open", "closed")),
    ):
        if value not in known:
            raise ValueError(f"{path.name}: {value!r}: expected one of {known}")
    return row


def rows() -> list[Row]:
    """Returns all rows, by part and name."""
    found = [read(path) for path in sorted(PROGRAMS.glob("*.py"))]
    return sorted(found, key=lambda row: PARTS.index(row.part))


def source(place: str) -> str | None:
    """Returns PyTorch's source of a place, or None if the wheel does not have it.

    Args:
        place: ``torch/random.py: fork_rng``, a file of Python and a function, class,
            method or variable; a header of C++ by the path that includes it; or another
            file of PyTorch's repository, which no wheel has.

    Raises:
        ValueError: If the file or the name is not there.
    """
    name, _, inside = place.partition(": ")
    if name.endswith(".cpp"):
        return None
    path = TORCH / "include" / name if name.endswith(".h") else TORCH.parent / name
    if not path.is_file():
        raise ValueError(f"{place}: torch {torch.__version__} has no such file")
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".h" or not inside:
        return text
    body = ast.parse(text).body
    found: ast.stmt | None = None
    for part in inside.split("."):
        defined = [each for each in body if part in _names(each)]
        if not defined:
            raise ValueError(f"{place}: torch {torch.__version__} has no such name")
        found = defined[-1]  # after its overloads
        body = getattr(found, "body", [])
    assert found is not None
    return ast.get_source_segment(text, found)


def _names(statement: ast.stmt) -> list[str]:
    """Returns the names that a statement defines."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.AnnAssign):
        return [ast.unparse(statement.target)]
    if isinstance(statement, ast.Assign):
        return [ast.unparse(target) for target in statement.targets]
    return []


def check(row: Row) -> None:
    """Checks that the place asks for what the row says, whatever the line breaks.

    Raises:
        ValueError: If it does not.
    """
    text = source(row.place)
    if text is not None and "".join(row.asks.split()) not in "".join(text.split()):
        raise ValueError(f"{row.name}: {row.place} does not ask for {row.asks}")


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
    """Returns the row as the page has it."""
    file, _, inside = row.place.partition(": ")
    place = f"`{file}`" + (f", `{inside}`" if inside else "")
    asks = row.asks.replace("|", "\\|")
    cells = (f"[{place}](#{row.name})", f"`{asks}`", row.means, row.noticed, way(row))
    return f"| {' | '.join(cells)} |"


def page() -> str:
    """Returns the whole page.

    Raises:
        ValueError: If a row is not true of this torch.
    """
    all_rows = rows()
    for row in all_rows:
        check(row)
    kinds = [row.kind for row in all_rows]
    quiet = [row.kind for row in all_rows if row.noticed == "nothing"]
    parts = [
        PART.format(
            name=part,
            rows="\n".join(line(row) for row in all_rows if row.part == part),
        )
        for part in PARTS
    ]
    text = TEXT.format(
        version=torch.__version__.split("+")[0],
        count=len(all_rows),
        open=kinds.count("mechanism") + kinds.count("open"),
        planned=kinds.count("planned"),
        closed=kinds.count("closed"),
        quiet=quiet.count("closed"),
        quiet_open=quiet.count("mechanism") + quiet.count("open"),
        parts="".join(parts),
        programs="".join(PROGRAM.format(name=row.name) for row in all_rows),
    )
    return updated(text, PAGE)


if __name__ == "__main__":
    sys.exit(main(__doc__.splitlines()[0], PAGE, page))
