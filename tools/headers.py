# SPDX-License-Identifier: BSD-3-Clause
"""Reads classes and their virtual methods from C++ headers, without a compiler."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
CLASS = re.compile(
    r"(?<!enum )\b(?:class|struct)\s+(?:[A-Z][A-Z0-9_]+\s+)?(?P<name>[A-Za-z]\w*)\s*"
    r"(?:final\s*)?(?::(?!:)(?P<bases>[^;{}()]*))?\{"
)
_DIRECTIVE = re.compile(r"^\s*#[^\n]*(?:\\\n[^\n]*)*", re.M)
_METHOD = re.compile(
    r"(?P<before>[^;{}()]*?)\b(?P<name>\w+)\s*\("
    r"(?P<arguments>(?:[^()]|\([^()]*\))*)\)\s*(?P<after>(?:const|noexcept|override|\s)*)"
    r"(?P<end>= 0;|= default;|= delete;|;|\{)",
    re.S,
)


class Virtual(NamedTuple):
    """A virtual method that a class declares or overrides.

    Attributes:
        name: The name.
        declaration: The declaration without ``virtual``, on one line.
        pure: Whether the method is pure virtual.
        noexcept: Whether it must not throw.
        body: The default implementation; None if the header only declares it.
    """

    name: str
    declaration: str
    pure: bool
    noexcept: bool
    body: str | None


def closing(text: str, start: int) -> int:
    """Returns the position of the brace that closes the brace at ``start``."""
    depth = 0
    for index in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[index], 0)
        if depth == 0:
            return index
    raise ValueError(f"nothing closes {text[start : start + 40]!r}")


def virtual_methods(text: str, name: str) -> Iterator[Virtual]:
    """Yields the virtual methods of a class, in the order of a header.

    Args:
        text: The header.
        name: The class.

    Raises:
        ValueError: If the header does not define a class of this name.
    """
    text = _DIRECTIVE.sub("", COMMENT.sub("", text))
    start = next((each for each in CLASS.finditer(text) if each["name"] == name), None)
    if start is None:
        raise ValueError(f"the header has no class {name}")
    text = text[start.end() : closing(text, start.end() - 1)]
    position = 0
    while match := _METHOD.search(text, position):
        body = None
        position = match.end()
        if match["end"] == "{":
            position = closing(text, match.end() - 1) + 1
            body = text[match.end() : position - 1]
        virtual = "virtual" in match["before"] or "override" in match["after"]
        if not virtual or match["before"].endswith("~"):
            continue
        before = re.sub(r".*\b(?:public|protected|private):", "", match["before"])
        declaration = f"{before}{match['name']}({match['arguments']}) {match['after']}"
        words = " ".join(word for word in declaration.split() if word != "virtual")
        yield Virtual(
            match["name"],
            words.replace("( ", "(").replace(" ,", ",").replace(" )", ")"),
            match["end"] == "= 0;",
            "noexcept" in match["after"],
            body,
        )
