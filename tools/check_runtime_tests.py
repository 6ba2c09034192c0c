# SPDX-License-Identifier: BSD-3-Clause
"""Checks that the C++ tests cover every C API function and every documented code.

    python tools/check_runtime_tests.py                    prints the gaps
    python tools/check_runtime_tests.py --write-codes F    writes F for the C++ tests

The tool reads the headers and the tests. It builds nothing. Each function needs

- a test suite with the name of the function, with a test in which a call succeeds;
- for each code of its "Errors:" list, a test in that suite that compares a call with
  the code, or a table row that a test of the suite ``EveryFunction`` uses and that
  names the code;
- a row in that table: ``row("orFunction", ...)``, or ``exempt("orFunction", ...)``.

A test in the suite that expects an undocumented code is also an error.
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
# The codes that [device] represents.
DEVICE_CODES = ("orErrorDeviceLost", "orErrorIllegalAddress", "orErrorAssert")
# The header documents these once for all functions.
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
        codes: The enumerators of its "Errors:" list; None without a list.
    """

    name: str
    codes: frozenset[str] | None


class Test(NamedTuple):
    """A C++ test: its names, its body without comments, and its first line."""

    suite: str
    name: str
    body: str
    where: str


class Row(NamedTuple):
    """A row of the table.

    Attributes:
        function: The function.
        traits: The traits that the row names.
        succeeds: False if the row has ``.returns(code)``. A test that uses all rows
            then does not make a successful call.
    """

    function: str
    traits: frozenset[str]
    succeeds: bool


def blank(source: str) -> str:
    """Replaces comments and literals with spaces, so that brackets can be matched."""

    def spaces(match: re.Match[str]) -> str:
        return re.sub(r"[^\n\"]" if match[0][0] == '"' else r"[^\n]", " ", match[0])

    return _OPAQUE.sub(spaces, source)


def closing(text: str, start: int) -> int:
    """Returns the position of the bracket that closes the bracket at ``start``.

    Raises:
        ValueError: If no bracket closes it.
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
    """Splits the text inside of the bracket at ``start`` at commas."""
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
    """Reads the declared functions and their documented codes.

    Args:
        header: The text of the header.

    Returns:
        The functions by name, in header order.
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
    """Yields the function and the code of each comparison in a test."""
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
        functions: The functions that the header declares.
        tests: All tests.
        rows: The table rows that the tests of ``EveryFunction`` use.

    Yields:
        One sentence for each missing or superfluous test, row or code.
    """
    table: dict[str, set[str]] = {row.function: set() for row in rows}
    for test in tests:
        if test.suite == TABLE_SUITE:
            codes = set(re.findall(r"\borError[A-Z]\w*", test.body))
            traits = set(_HAS_TRAIT.findall(test.body))
            for row in rows:
                # A test that requires traits covers the rows with these traits.
                if traits <= row.traits and (traits or row.succeeds):
                    table[row.function] |= codes
    for name in table.keys() - functions.keys():
        yield f"the table has a row for {name}, which the header does not declare"

    for name, function in functions.items():
        if name not in table:
            yield f"{name} has no row in the table of {TABLE_SUITE}"
        own = [test for test in tests if test.suite == name]
        if function.codes is None:  # it returns no error code: a call is enough
            if not any(re.search(rf"\b{name}\s*\(", test.body) for test in own):
                yield f"no test in the suite {name} calls the function"
            continue
        found = {
            code for test in own for call, code in outcomes(test.body) if call == name
        }
        if SUCCESS not in found:
            yield f"{name} succeeds in no test of its suite"
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
    """Reads a workspace and lists its gaps.

    Args:
        root: The root of the workspace.

    Returns:
        One sentence for each gap; an empty list without gaps.
    """
    header = read_headers(root)
    functions, known = read_functions(header), read_codes(header)
    tests, rows = [], []
    for path in sorted((root / TESTS).glob("*.cpp")):
        source = path.read_text()
        tests += read_tests(source, str(path.relative_to(root)))
        rows += read_rows(source)
    unknown = [
        f"{function.name} documents {code}, which is not in orError_t"
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
    """Returns the documented codes as C++: ``{"orMalloc", {orError..., ...}},``."""
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
    print("\n".join(found) or "every function and every code has a test")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
