# SPDX-License-Identifier: BSD-3-Clause
"""Finds the names of torch that Python sources use."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

_MODULE = re.compile(r"torch(?:\.[A-Za-z_]\w*)+")


def calls(texts: Mapping[str, str]) -> dict[str, list[str]]:
    """Returns the places of each name ``torch.x.y``, in the order of the names.

    Args:
        texts: The text of each file.
    """
    found = defaultdict(list)
    for file, text in texts.items():
        tree = ast.parse(text)
        aliases: dict[str, str] = {}
        for _ in range(2):  # an alias of an alias may precede it
            for node in ast.walk(tree):
                aliases |= _aliases(node, aliases)
        for node in ast.walk(tree):
            for name in _names(node, aliases):
                found[name].append(f"{file}:{getattr(node, 'lineno', 1)}")
    return dict(sorted(found.items()))


def _dotted(node: ast.AST | None, aliases: Mapping[str, str]) -> str:
    """Returns the name of torch that an expression is; empty for another one."""
    if isinstance(node, ast.Name):
        return aliases.get(node.id, "")
    if isinstance(node, ast.Attribute):
        base = _dotted(node.value, aliases)
        return f"{base}.{node.attr}" if base else ""
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
        (argument, *_) = [*node.args, ast.Constant("")]
        value = argument.value if isinstance(argument, ast.Constant) else ""
        return value if isinstance(value, str) and _MODULE.fullmatch(value) else ""
    return ""


def _aliases(node: ast.AST, aliases: Mapping[str, str]) -> dict[str, str]:
    """Returns the names of a file that a statement makes names of torch."""
    if isinstance(node, ast.Import):
        return {
            each.asname or "torch": each.name if each.asname else "torch"
            for each in node.names
            if each.name.partition(".")[0] == "torch"
        }
    if isinstance(node, ast.ImportFrom):
        module = "" if node.level else node.module or ""
        if module.partition(".")[0] == "torch":
            return {
                each.asname or each.name: f"{module}.{each.name}" for each in node.names
            }
    if isinstance(node, ast.Assign | ast.AnnAssign) and (
        name := _dotted(node.value, aliases)
    ):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return {each.id: name for each in targets if isinstance(each, ast.Name)}
    return {}


def _names(node: ast.AST, aliases: Mapping[str, str]) -> Iterator[str]:
    """Yields the names of torch that a node uses."""
    if isinstance(node, ast.Import):
        yield from (e.name for e in node.names if e.name.partition(".")[0] == "torch")
    elif isinstance(node, ast.ImportFrom):
        yield from _aliases(node, {}).values()
    elif isinstance(node, ast.Attribute):
        if name := _dotted(node, aliases):
            yield name
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        if _MODULE.fullmatch(node.value):
            yield node.value
    elif isinstance(node, ast.ClassDef):
        # The methods of the bases that the class overrides.
        own = [e.name for e in node.body if isinstance(e, ast.FunctionDef)]
        for base in node.bases:
            if name := _dotted(base, aliases):
                yield from (f"{name}.{method}" for method in own)
