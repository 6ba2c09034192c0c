# SPDX-License-Identifier: BSD-3-Clause
"""Lists the texts of the errors and warnings that the packages raise, to read them.

python tools/raised_texts.py                           # all: file:line and the text
python tools/raised_texts.py packages/openreg-runtime  # of these files and folders
python tools/raised_texts.py --count                   # only the number in each package

A value in a text is in braces, as the program computes it: ``{device}``. The list does
not contain the texts that the suites of openreg-conformance report, or that a function
composes and another one raises.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from prose import CPP, files
from workspace import ROOT

# C++ functions and macros that throw or warn: the packages' own (``fail``,
# ``reject_limit``), PyTorch's and Python's, and the table of the runtime's errors.
_RAISES = re.compile(
    r"\b(?P<name>(?:STD_)?TORCH_(?:CHECK|WARN|INTERNAL_ASSERT)\w*|C10_THROW_ERROR"
    r"|throw [\w:]+|return [\w:]*(?:Failure|Error)|make_exception_ptr"
    r"|(?:fail|refuse|reject|raise|throw|malformed|invalidate|warn)(?:_\w+)?"
    r"|Malformed|PyErr_(?:SetString|Format|WarnEx|WarnFormat)|set_last_error)\s*\("
    r"|\bcase orError\w+:\s*return(?= )"
)
_TOKEN = re.compile(rf"{CPP.pattern}|\w+|\s+|.", re.DOTALL)
SUITES = "openreg_conformance/suites/"


class Raised(NamedTuple):
    """A text that a line of a file raises."""

    path: Path
    line: int
    text: str


def _argument(tokens: list[re.Match[str]]) -> str:
    """Returns the text of an argument: its string literals, the rest in braces."""
    pieces: list[str] = []
    value = ""
    for token in tokens:
        if string := token["string"]:
            pieces += [_placeholder(value), string[1:-1]]
            value = ""
        elif not token["comment"]:
            value += re.sub(r"\s+", " ", token.group())
    return "".join([*pieces, _placeholder(value)])


def _placeholder(value: str) -> str:
    """Returns an expression between literals in braces, without conversions."""
    value = re.sub(r"\bstd::to_string\(([^()]*(?:\([^()]*\))*[^()]*)\)", r"\1", value)
    value = re.sub(r"\b(?:std::string(?:_view)?|c10::str)\($", "", value.strip(" ,"))
    value = re.sub(r"^\)?\s*\+|\+$", "", value.strip(" ,")).strip()
    return f"{{{value}}}" if value.strip(") ,") else ""


def _cpp(source: str) -> Iterator[tuple[int, str]]:
    """Yields the line and the text of each call that raises."""
    for match in _RAISES.finditer(source):
        arguments: list[list[re.Match[str]]] = [[]]
        depth = 0
        for token in _TOKEN.finditer(source, match.end()):
            depth += (token.group() in "([{") - (token.group() in ")]}")
            if depth < 0 or token.group() == ";":
                break
            if token.group() == "," and depth == 0:
                arguments.append([])
            else:
                arguments[-1].append(token)
        literals = [any(token["string"] for token in each) for each in arguments]
        if True not in literals:
            continue
        first = min(literals.index(True), 1)  # behind a condition or a code
        text = "".join(map(_argument, arguments[first:]))
        if " " in text:
            yield source.count("\n", 0, match.start()) + 1, text


def _python(source: str) -> Iterator[tuple[int, str]]:
    """Yields the line and the text of each ``raise`` and warning."""
    texts: dict[str, ast.expr] = {}  # the variables' values, for ``raise X(message)``
    tree = ast.parse(source)
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.stmt | ast.expr)]
    for node in sorted(nodes, key=lambda node: (node.lineno, node.col_offset)):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            texts[node.targets[0].id] = node.value
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            call = node.exc
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("warn"):
            call = node
        else:
            continue
        if call.args:
            text = call.args[0]
            if isinstance(text, ast.Name):
                text = texts.get(text.id, text)
            yield node.lineno, _expression(text)


def _expression(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_expression, node.values))
    if isinstance(node, ast.FormattedValue):
        return f"{{{ast.unparse(node.value)}}}"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _expression(node.left) + _expression(node.right)
    return f"{{{ast.unparse(node)}}}"


def raised(places: list[str]) -> Iterator[Raised]:
    """Yields the texts of the files below the places."""
    for path in files(places):
        if path.suffix in (".md", ".toml", ".pyi", ".c") or SUITES in str(path):
            continue
        source = path.read_text()
        for line, text in (_python if path.suffix == ".py" else _cpp)(source):
            yield Raised(path.relative_to(ROOT), line, text)


def main() -> None:
    """Prints the texts, or their number in each package."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "places", nargs="*", default=["packages"], help="files and folders"
    )
    parser.add_argument("--count", action="store_true", help="print only a table")
    arguments = parser.parse_args()
    texts = list(raised(arguments.places))
    if arguments.count:
        for package, count in Counter(
            "/".join(each.path.parts[:2]) for each in texts
        ).items():
            print(f"{count:6} {package}")
        print(f"{len(texts):6} in all")
    else:
        for each in texts:
            print(f"{each.path}:{each.line}: {each.text}")


if __name__ == "__main__":
    main()
