# SPDX-License-Identifier: BSD-3-Clause
"""Proves that the C++ tests cover the C API: every function, every code it documents.

    python tools/check_runtime_tests.py                    prints what is missing
    python tools/check_runtime_tests.py --write-codes F    writes F for the C++ tests

It reads the headers and the tests; nothing is built. For each function it wants

- a test whose suite is the function's name, in which a call of it succeeds;
- for each code of its "Errors:" list a test of that suite in which a call is compared
  with the code, or a row in a table that a test of the suite ``EveryFunction`` goes
  through and that names the code;
- a row in that table: ``row("orFunction", ...)``, or ``exempt("orFunction", ...)``.

A test of the suite that expects a code the list lacks is an error too.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from workspace import ROOT

HEADERS = Path("packages/openreg-runtime/include/openreg")
TESTS = Path("tests/runtime/cpp")
TABLE_SUITE = "EveryFunction"
SUCCESS = "orSuccess"
# What [device] means.
DEVICE_CODES = ("orErrorDeviceLost", "orErrorIllegalAddress", "orErrorAssert")
# The header says once, for all functions, when they return these.
ALWAYS_ALLOWED = frozenset({SUCCESS, "orErrorInitialization", "orErrorUnknown"})

_ENUM = re.compile(r"typedef enum orError_t \{(.*?)\}", re.DOTALL)
_FUNCTION = re.compile(
    r"(?:/\*(?P<comment>(?:(?!\*/).)*)\*/\s*)?"
    r"\bOPENREG_(?:API|EXPORT)\s+[\w\s*]*?\b(?P<name>or[A-Z]\w*)\s*\(",
    re.DOTALL,
)
_ERRORS = re.compile(r"\bErrors:\s*([^.]*)\.")
_TEST = re.compile(r"\bTEST(?:_[FP])?\s*\(\s*(\w+)\s*,\s*(\w+)\s*\)\s*\{")
_COMPARISON = re.compile(r"\b(?:(?:ASSERT|EXPECT)_(?P<kind>OK|EQ)|report)\s*\(")
_CALL = re.compile(r"\s*(?:::)?(or[A-Z]\w*)\s*\(")
_CODE = re.compile(r"\s*(orSuccess|orError[A-Z]\w*)\s*")
_ROW = re.compile(r'\b(?:row(?:<[^;{}()]*>)?|exempt)(\()\s*"(or\w+)"')
_RETURNS = re.compile(r"[^,;]*\.returns\b")
_TRAIT = re.compile(r"\bk[A-Z]\w*")
_HAS_TRAIT = re.compile(r"\.has\((k[A-Z]\w*)\)")
# Comments, strings and characters (but not 1'000).
_OPAQUE = re.compile(
    r"//[^\n]*|/\*.*?\*/"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9A-Za-z])'(?:\\.|[^'\\\n])*'",
    re.DOTALL,
)


class Function(NamedTuple):
    """A function of the header.

    Attributes:
        name: Its name.
        codes: What its "Errors:" list names, as enumerators; None without a list.
    """

    name: str
    codes: frozenset[str] | None


class Test(NamedTuple):
    """A test in C++: its names, its body without comments, and where it begins."""

    suite: str
    name: str
    body: str
    where: str


class Row(NamedTuple):
    """A row of the table.

    Attributes:
        function: The function.
        traits: The traits that the row names.
        succeeds: False if the row says ``.returns(code)``: then a test that goes
            through all rows does not see the function at work.
    """

    function: str
    traits: frozenset[str]
    succeeds: bool


def blank(source: str) -> str:
    """Replaces comments and literals by spaces, so that brackets can be matched."""

    def spaces(match: re.Match[str]) -> str:
        return re.sub(r"[^\n\"]" if match[0][0] == '"' else r"[^\n]", " ", match[0])

    return _OPAQUE.sub(spaces, source)


def closing(text: str, start: int) -> int:
    """Finds the bracket that closes the one at ``start``.

    Raises:
        ValueError: If none does.
    """
    depth = 0
    for index in range(start, len(text)):
        if text[index] in "([{":
            depth += 1
        elif text[index] in ")]}":
            depth -= 1
            if depth == 0:
                return index
    raise ValueError(f"nothing closes {text[start : start + 40]!r}")


def arguments(text: str, start: int) -> list[str]:
    """Splits what stands between the bracket at ``start`` and its end at commas."""
    end = closing(text, start)
    result, begin, index = [], start + 1, start + 1
    while index < end:
        if text[index] in "([{":
            index = closing(text, index)
        elif text[index] == ",":
            result.append(text[begin:index])
            begin = index + 1
        index += 1
    return [*result, text[begin:end]]


def read_codes(header: str) -> list[str]:
    """Lists the enumerators of ``orError_t``."""
    found = _ENUM.search(header)
    return re.findall(r"\bor(?:Success|Error\w+)", found[1]) if found else []


def read_functions(header: str) -> dict[str, Function]:
    """Reads what the header declares and which codes it documents.

    Args:
        header: The text of the header.

    Returns:
        The functions by name, in the order of the header.
    """
    result = {}
    for match in _FUNCTION.finditer(header):
        text = re.sub(r"\s+\*?\s*", " ", match["comment"] or "")
        listed = _ERRORS.search(re.sub(r"\([^()]*\)", "", text))
        codes = None
        if listed:
            names = [name.strip() for name in listed[1].split(",")]
            codes = frozenset(
                code
                for name in names
                for code in (DEVICE_CODES if name == "[device]" else [f"orError{name}"])
            )
        result[match["name"]] = Function(match["name"], codes)
    return result


def read_headers(root: Path) -> str:
    """Returns the text of all headers of a workspace."""
    paths = sorted((root / HEADERS).glob("*.h"))
    return "".join(path.read_text() for path in paths)


def read_tests(source: str, path: str) -> list[Test]:
    """Finds the tests of a C++ file.

    Args:
        source: The text of the file.
        path: Its name, for messages.
    """
    text = blank(source)
    result = []
    for match in _TEST.finditer(text):
        body = text[match.end() - 1 : closing(text, match.end() - 1) + 1]
        line = text.count("\n", 0, match.start()) + 1
        result.append(Test(match[1], match[2], body, f"{path}:{line}"))
    return result


def read_rows(source: str) -> list[Row]:
    """Finds the rows of the table in a C++ file."""
    text = blank(source)
    result = []
    for match in _ROW.finditer(source):
        start = match.start(1)
        if text[start] == "(":  # no comment
            end = closing(text, start)
            result.append(
                Row(
                    match[2],
                    frozenset(_TRAIT.findall(text, start, end)),
                    not _RETURNS.match(text, end + 1),
                )
            )
    return result


def outcomes(body: str) -> Iterator[tuple[str, str]]:
    """Yields each function and code that a test compares a call of it with."""
    for match in _COMPARISON.finditer(body):
        values = arguments(body, match.end() - 1)
        call = _CALL.match(values[0])
        if not call or values[0][closing(values[0], call.end() - 1) + 1 :].strip():
            continue
        if match["kind"] == "OK":
            yield call[1], SUCCESS
        elif len(values) > 1 and (code := _CODE.fullmatch(values[1])):
            yield call[1], code[1]


def gaps(
    functions: dict[str, Function], tests: list[Test], rows: list[Row]
) -> Iterator[str]:
    """Compares the header with the tests.

    Args:
        functions: What the header declares.
        tests: All tests.
        rows: The rows of the table that the tests of ``EveryFunction`` go through.

    Yields:
        One sentence for each thing that is missing, or too much.
    """
    table: dict[str, set[str]] = {row.function: set() for row in rows}
    for test in tests:
        if test.suite == TABLE_SUITE:
            codes = set(re.findall(r"\borError[A-Z]\w*", test.body))
            traits = set(_HAS_TRAIT.findall(test.body))
            for row in rows:
                # A test that asks for traits is one of the rows that have them.
                if traits <= row.traits and (traits or row.succeeds):
                    table[row.function] |= codes
    for name in table.keys() - functions.keys():
        yield f"the table has a row for {name}, which the header does not declare"

    for name, function in functions.items():
        if name not in table:
            yield f"{name} has no row in the table of {TABLE_SUITE}"
        own = [test for test in tests if test.suite == name]
        if function.codes is None:  # it returns something else: a call is enough
            if not any(re.search(rf"\b{name}\s*\(", test.body) for test in own):
                yield f"{name} is called in no test of its own"
            continue
        found = {
            code for test in own for call, code in outcomes(test.body) if call == name
        }
        if SUCCESS not in found:
            yield f"{name} succeeds in no test of its own"
        for code in sorted(function.codes - found - table.get(name, set())):
            yield f"{name} returns {code} in no test"
        for test in own:
            for call, code in outcomes(test.body):
                if call == name and code not in function.codes | ALWAYS_ALLOWED:
                    yield (
                        f"{test.where}: {name}.{test.name} expects {code}, "
                        "which the header does not list"
                    )


def check(root: Path) -> list[str]:
    """Reads a workspace and lists what is missing in it.

    Args:
        root: The workspace.

    Returns:
        One sentence for each gap; empty if there is none.
    """
    header = read_headers(root)
    functions, known = read_functions(header), read_codes(header)
    tests, rows = [], []
    for path in sorted((root / TESTS).glob("*.cpp")):
        source = path.read_text()
        tests += read_tests(source, str(path.relative_to(root)))
        rows += read_rows(source)
    unknown = [
        f"{function.name} documents {code}, which is no orError_t"
        for function in functions.values()
        for code in sorted((function.codes or set()) - set(known))
    ]
    strangers = [
        f"{test.where}: no function of the header is called {test.suite}"
        for test in tests
        if re.match(r"or[A-Z]", test.suite) and test.suite not in functions
    ]
    return [*unknown, *strangers, *gaps(functions, tests, rows)]


def code_table(header: str) -> str:
    """Writes what the header documents as C++: ``{"orMalloc", {orError..., ...}},``."""
    return "".join(
        f'{{"{function.name}", {{{", ".join(sorted(function.codes or ()))}}}}},\n'
        for function in read_functions(header).values()
    )


def main(argv: list[str] | None = None, root: Path | None = None) -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description="Check that every function is tested.")
    parser.add_argument(
        "--write-codes",
        type=Path,
        metavar="FILE",
        help="only write the documented codes as a C++ table",
    )
    options = parser.parse_args(argv)
    root = root or ROOT
    if options.write_codes:
        options.write_codes.write_text(code_table(read_headers(root)))
        return 0
    found = check(root)
    print("\n".join(found) or "every function and every code has its test")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
