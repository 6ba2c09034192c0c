# SPDX-License-Identifier: BSD-3-Clause
"""Reads the sources of an installed torch without importing it.

Names of Python are resolved through assignments, imports and base classes. A name that
PyTorch computes when it is imported is not found.
"""

from __future__ import annotations

import ast
import functools
import inspect
import io
import re
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

INCLUDES = ("include", "include/torch/csrc/api/include", "include/kineto")


class Definition(NamedTuple):
    """The place where PyTorch defines a name.

    Attributes:
        path: The file.
        node: The statement, or None for a module.
    """

    path: Path
    node: ast.stmt | None


def names(statement: ast.stmt) -> list[str]:
    """Returns the names that a statement defines, without imports."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.AnnAssign):
        return [ast.unparse(statement.target)]
    if isinstance(statement, ast.Assign):
        return [ast.unparse(target) for target in statement.targets]
    return []


def statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yields statements, including the branches of conditions, but not functions."""
    for each in body:
        yield each
        for field in ("body", "orelse", "handlers", "finalbody"):
            if isinstance(each, ast.If | ast.Try | ast.With | ast.ExceptHandler):
                yield from statements(getattr(each, field, []))


class Tree:
    """The sources of one installed torch.

    Attributes:
        site: The folder that contains ``torch``.
        torch: The package.
        version: The full version.
    """

    def __init__(self, environment: Path) -> None:
        """Finds torch in an environment.

        Args:
            environment: The folder of the environment, or its ``site-packages``.

        Raises:
            ValueError: If the folder does not contain one torch.
        """
        folders = [environment, *environment.glob("lib/python3*/site-packages")]
        found = [each for each in folders if (each / "torch/version.py").is_file()]
        if len(found) != 1:
            raise ValueError(f"{environment}: found {len(found)} torch, expected one")
        self.site = found[0]
        self.torch = self.site / "torch"
        text = (self.torch / "version.py").read_text(encoding="utf-8")
        version = re.search(r"^__version__ = '(.*)'", text, re.M)
        assert version is not None
        self.version = version[1]

    @property
    def short(self) -> str:
        """The version without its last number, such as ``2.13``."""
        return ".".join(self.version.split(".")[:2])

    def header(self, name: str) -> str | None:
        """Returns the text of a header, or None if torch does not have it."""
        for folder in INCLUDES:
            path = self.torch / folder / name
            if path.is_file():
                return path.read_text(encoding="utf-8")
        return None

    @functools.cache  # noqa: B019  (as long as the program)
    def find(self, dotted: str) -> Definition | None:
        """Finds a name such as ``torch._inductor.ir.Loops.create``."""
        return self._find(dotted, frozenset())

    def source(self, definition: Definition) -> str:
        """Returns the same text as ``inspect.getsource``, or the whole module."""
        text = definition.path.read_text(encoding="utf-8")
        node = definition.node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            part = ast.get_source_segment(text, node) if node else text
            return part or ""
        first = node.decorator_list[0] if node.decorator_list else node
        lines = io.StringIO(text).readlines()  # splits at fewer characters than str
        return "".join(inspect.getblock(lines[first.lineno - 1 :]))

    def _find(self, dotted: str, seen: frozenset[str]) -> Definition | None:
        if dotted in seen:
            return None
        seen |= {dotted}
        parts = dotted.split(".")
        for count in range(len(parts), 0, -1):
            if path := self._module(".".join(parts[:count])):
                rest = parts[count:]
                return (
                    self._inside(path, rest, seen) if rest else Definition(path, None)
                )
        return None

    @functools.cache  # noqa: B019
    def _module(self, dotted: str) -> Path | None:
        path = self.site.joinpath(*dotted.split("."))
        for file in (path / "__init__", path):
            for suffix in (".py", ".pyi"):
                if (found := file.with_name(file.name + suffix)).is_file():
                    return found
        return None

    @functools.cache  # noqa: B019
    def _index(self, path: Path) -> tuple[dict[str, ast.stmt | str], list[str]]:
        """Returns the names of a module, as statements or imports, and its ``*``."""
        package = list(path.relative_to(self.site).with_suffix("").parts)
        index: dict[str, ast.stmt | str] = {}
        stars = []
        for each in statements(ast.parse(path.read_bytes()).body):
            if isinstance(each, ast.Import):
                for alias in each.names:
                    short = alias.name.partition(".")[0]
                    index[alias.asname or short] = alias.name if alias.asname else short
            elif isinstance(each, ast.ImportFrom):
                base = package[: -each.level] if each.level else []
                module = ".".join([*base, *filter(None, [each.module])])
                for alias in each.names:
                    if alias.name == "*":
                        stars.append(module)
                    else:
                        name = f"{module}.{alias.name}"
                        index[alias.asname or alias.name] = name
            else:
                index |= dict.fromkeys(names(each), each)
        return index, stars

    def _inside(
        self, path: Path, parts: Sequence[str], seen: frozenset[str]
    ) -> Definition | None:
        """Finds a name in a module."""
        index, stars = self._index(path)
        found = index.get(parts[0])
        if isinstance(found, str):
            return self._find(".".join([found, *parts[1:]]), seen)
        if found is not None:
            return self._member(path, found, parts[1:], seen)
        for star in stars:
            if inherited := self._find(".".join([star, *parts]), seen):
                return inherited
        return None

    @functools.cache  # noqa: B019
    def _members(self, node: ast.ClassDef) -> dict[str, ast.stmt]:
        return {name: each for each in statements(node.body) for name in names(each)}

    def _member(
        self, path: Path, node: ast.stmt, parts: Sequence[str], seen: frozenset[str]
    ) -> Definition | None:
        """Finds a name in a class; attributes of other values are not checked."""
        if not parts or not isinstance(node, ast.ClassDef):
            return Definition(path, node)
        members = self._members(node)
        if parts[0] in members:
            return self._member(path, members[parts[0]], parts[1:], seen)
        for base in node.bases:
            within = [*ast.unparse(base).partition("[")[0].split("."), *parts]
            if found := self._inside(path, within, seen):
                return found
        return None


def installed() -> Tree:
    """Returns the torch of this interpreter."""
    spec = find_spec("torch")
    assert spec is not None
    assert spec.origin is not None
    return Tree(Path(spec.origin).parents[1])
