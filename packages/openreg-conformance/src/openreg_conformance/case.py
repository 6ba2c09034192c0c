# SPDX-License-Identifier: BSD-3-Clause
"""A case: a stable name, and a function of a device that passes or fails."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

LEVELS = ("smoke", "sample", "whole")
HOST = "cpu"
BITS = "bits"  # the check that fails where values are equal up to rounding


class SkippedError(Exception):
    """Says why a case does not apply to a device."""


@dataclasses.dataclass(frozen=True)
class Inexact:
    """Values that are equal to the CPU's, but not in their bits.

    Attributes:
        made: How many checks had such values.
        message: Which was the first.
        program: A program that shows it without this package.
    """

    made: int
    message: str
    program: str


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What came of a case.

    Attributes:
        made: How many checks were made.
        passed: How many of them passed.
        same_bits: How many gave the bits of the CPU; None if no values were compared.
        message: What failed first, and how.
        check: Which check that was.
        program: A program that shows it without this package.
        inexact: What passed without the CPU's bits, or with other random numbers; it
            fails a run that demands them.
    """

    made: int = 1
    passed: int = 1
    same_bits: int | None = None
    message: str = ""
    check: str = ""
    program: str = ""
    inexact: Inexact | None = None


@dataclasses.dataclass(frozen=True)
class Case:
    """One thing to find out about a device.

    Attributes:
        name: Stable over versions of torch: ``"operators/add/float32/forward"``.
        mechanism: A key of ``MECHANISMS``: what of a backend is at fault if it fails.
        subject: What is at fault more closely, such as an operator; often empty.
        title: What holds if the case passes.
        run: Finds out; raises what goes wrong.
        program: A program for the case as a whole, for a crash as well.
        users: The share of programs that need this, from 0 to 1.
    """

    name: str
    mechanism: str
    subject: str
    title: str
    run: Callable[[str], Verdict]
    program: Callable[[str], str]
    users: float

    @property
    def suite(self) -> str:
        """The suite of a case."""
        return self.name.partition("/")[0]


def device_count(device: str) -> int:
    """How many devices of a type the process has; 0 if its module cannot say."""
    import torch

    module = getattr(torch, torch.device(device).type, None)
    count = getattr(module, "device_count", None)
    return int(count()) if count is not None else 0


def _check_needs(device: str, needs: tuple[str, ...]) -> None:
    if "accelerator" in needs and device == HOST:
        raise SkippedError("the CPU is not an accelerator")
    if "two devices" in needs and device_count(device) < 2:
        raise SkippedError("fewer than two devices")


class Suite:
    """Programs of a suite that are written by hand.

    Args:
        module: The ``__name__`` of the module whose functions are cases.
    """

    def __init__(self, module: str) -> None:
        self.name = module.rpartition(".")[2]
        self._cases: list[tuple[int, Case]] = []

    def case(
        self,
        mechanism: str,
        *needs: str,
        level: str = "smoke",
        subject: str = "",
        users: float | None = None,
        each: Sequence[tuple[str, ...]] = ((),),
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Makes a case of a function of a device, whose docstring is its title.

        What the function returns, if it does, is what the device gives and what the
        CPU gives, which are compared.

        Args:
            mechanism: A key of ``MECHANISMS``.
            needs: ``"accelerator"``, ``"two devices"``: else the case is skipped.
            level: The first level that has the case.
            subject: What is at fault if it fails, more closely than the mechanism.
            users: The share of programs that need it, if not that of the mechanism.
            each: Words that the function is given after the device, and that the name
                of the case ends with; one case for each.
        """

        def add(function: Callable[..., Any]) -> Callable[..., Any]:
            from .mechanisms import MECHANISMS

            def run(words: tuple[str, ...], device: str) -> Verdict:
                _check_needs(device, needs)
                pair = function(device, *words)
                write = functools.partial(program_of, function, words=words)
                return Verdict() if pair is None else _compared(pair, device, write)

            share = MECHANISMS[mechanism].users if users is None else users
            title = (function.__doc__ or "").splitlines()[0]
            for words in each:
                case = Case(
                    name="/".join([self.name, function.__name__, *words]),
                    mechanism=mechanism,
                    subject=subject,
                    title=title.removesuffix(".") + f": {', '.join(words)}."
                    if words
                    else title,
                    run=functools.partial(run, words),
                    program=functools.partial(program_of, function, words=words),
                    users=share,
                )
                self._cases.append((LEVELS.index(level), case))
            return function

        return add

    def cases(self, level: str) -> Iterator[Case]:
        """Lists the cases of a level."""
        for first, case in self._cases:
            if first <= LEVELS.index(level):
                yield case


def _compared(pair: tuple[Any, Any], device: str, write: Callable[..., str]) -> Verdict:
    """Compares what a case gave on a device with what it gave on the CPU."""
    from .checks.comparison import Likeness, compare

    likeness = compare(*pair, device)
    if likeness == Likeness.SAME:
        return Verdict(same_bits=1)
    text = write(device, exact=True)
    return Verdict(same_bits=0, inexact=Inexact(1, "not the bits of the CPU", text))


def _names_in(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _defined_by(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Import | ast.ImportFrom):
        names = [each.asname or each.name.partition(".")[0] for each in node.names]
        return set(names)
    if isinstance(node, ast.Assign):
        return {each.id for each in node.targets if isinstance(each, ast.Name)}
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return {node.target.id}
    return set()


def _returns(function: ast.AST) -> bool:
    """Whether a function returns a value; functions inside it do not count."""
    return any(
        (isinstance(node, ast.Return) and node.value is not None) or _returns(node)
        for node in ast.iter_child_nodes(function)
        if not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda)
    )


_COMPARED = """\
def on_the_cpu(values):
    if isinstance(values, torch.Tensor):
        return values.cpu()
    return [on_the_cpu(each) for each in values]


mine, expected = {call}
torch.testing.assert_close(on_the_cpu(mine), on_the_cpu(expected){options})"""


def _is_ours(node: ast.stmt) -> bool:
    """Whether a statement imports from this package."""
    if not isinstance(node, ast.ImportFrom):
        return False
    return node.level > 0 or (node.module or "").startswith(__package__)


def _borrowed(
    function: Callable[..., Any], body: list[ast.stmt], wanted: set[str]
) -> list[str]:
    """Texts that the module of a function imports from another of this package."""
    imported = {
        name for node in body if _is_ours(node) for name in _defined_by(node) & wanted
    }
    values = {name: function.__globals__[name] for name in sorted(imported)}
    texts = [f"{k} = {v!r}" for k, v in values.items() if isinstance(v, str)]
    return texts + [
        inspect.getsource(each)
        for each in values.values()
        if inspect.isfunction(each) or inspect.isclass(each)
    ]


def program_of(
    function: Callable[..., Any],
    device: str,
    *,
    words: tuple[str, ...] = (),
    call: str = "",
    exact: bool = False,
) -> str:
    """Writes a program of a function: what it needs of its module, and a call of it.

    Args:
        function: A function of a device, at the top of its module.
        device: The device that it is called with.
        words: What it is called with besides.
        call: How the program calls the function, if not with the device and words.
        exact: Whether results have to have the CPU's bits.
    """
    path = inspect.getsourcefile(function)
    text = Path(path or "").read_text(encoding="utf-8")
    body = ast.parse(text).body
    wanted, chosen = {function.__name__}, set()
    # Decorators of this package make cases; those of others belong to the program.
    imported = {
        name
        for node in body
        if isinstance(node, ast.Import | ast.ImportFrom) and not _is_ours(node)
        for name in _defined_by(node)
    }
    grew = True
    while grew:
        grew = False
        for i, node in enumerate(body):
            if i in chosen or not _defined_by(node) & wanted:
                continue
            if _is_ours(node):
                continue  # of this package: decorators alone use it
            chosen.add(i)
            if isinstance(node, ast.FunctionDef):
                node.decorator_list = [
                    each for each in node.decorator_list if _names_in(each) & imported
                ]
            wanted |= _names_in(node)
            grew = True
    lines = text.splitlines()
    imports: list[str] = []
    rest = _borrowed(function, body, wanted)
    named = function.__name__
    definition = next(body[i] for i in chosen if named in _defined_by(body[i]))
    for i in sorted(chosen):
        node = body[i]
        decorators = getattr(node, "decorator_list", [])
        first = min(each.lineno for each in (node, *decorators))
        source = "\n".join(lines[first - 1 : node.end_lineno])
        is_import = isinstance(node, ast.Import | ast.ImportFrom)
        (imports if is_import else rest).append(textwrap.dedent(source))
    if not call:
        arguments = ", ".join(f'"{each}"' for each in (device, *words))
        call = f"{named}({arguments})"
        if _returns(definition):
            call = _COMPARED.format(call=call, options=", rtol=0, atol=0" * exact)
    if "import torch" not in imports:
        imports.insert(0, "import torch")
    head = "\n".join(["from __future__ import annotations\n", *imports])
    return "\n\n".join(part for part in [head, *rest, call] if part) + "\n"
