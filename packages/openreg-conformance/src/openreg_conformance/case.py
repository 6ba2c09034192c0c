# SPDX-License-Identifier: BSD-3-Clause
"""A case: a stable name, and a function of a device, which passes or fails."""

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
BITS = "bits"  # the check that fails if values differ only by rounding


class SkippedError(Exception):
    """Raised with the reason why a case does not apply to a device."""


@dataclasses.dataclass(frozen=True)
class Inexact:
    """Values that agree with the CPU's within the tolerance, but not bitwise.

    Attributes:
        made: The number of these checks.
        message: The first of them.
        program: A program that reproduces it without this package.
    """

    made: int
    message: str
    program: str


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The result of a case.

    Attributes:
        made: The number of checks.
        passed: The number of passed checks.
        same_bits: The number of bitwise equal checks; None if no values were compared.
        message: The first failure.
        check: The failed check.
        program: A program that reproduces it without this package.
        inexact: Checks that passed without bitwise equality, or with different random
            numbers; they fail an exact run.
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
    """A single property of a device.

    Attributes:
        name: Stable over versions of torch: ``"operators/add/float32/forward"``.
        mechanism: A key of ``MECHANISMS``: the part of a backend that is at fault if it
            fails.
        subject: A more specific part, such as an operator; often empty.
        title: The statement that is true if the case passes.
        run: Runs the case; raises its failure.
        program: A program for the whole case, even for a crash.
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
    """Returns the number of devices of a type; 0 if its module has no count."""
    import torch

    module = getattr(torch, torch.device(device).type, None)
    count = getattr(module, "device_count", None)
    return int(count()) if count is not None else 0


def _check_needs(device: str, needs: tuple[str, ...]) -> None:
    if "accelerator" in needs and device == HOST:
        raise SkippedError("the CPU is not an accelerator")
    if "two devices" in needs and device_count(device) < 2:
        raise SkippedError("fewer than two devices")
    if "PrivateUse1" in needs and not _is_privateuse1(device):
        raise SkippedError("PyTorch needs it only of devices of PrivateUse1")


def _is_privateuse1(device: str) -> bool:
    import torch

    return torch.device(device).type == torch._C._get_privateuse1_backend_name()


class Suite:
    """Hand-written programs of a suite.

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
        """Turns a function of a device into a case; the docstring is the title.

        If the function returns a pair, it contains the results of the device and of the
        CPU, which are compared.

        Args:
            mechanism: A key of ``MECHANISMS``.
            needs: ``"accelerator"``, ``"two devices"``, ``"PrivateUse1"``: else the
                case is skipped.
            level: The first level that has the case.
            subject: The part at fault if it fails, more specific than the mechanism.
            users: The share of programs that need it, by default the mechanism's.
            each: Words passed to the function after the device and appended to the name
                of the case; one case per word or tuple.
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
    """Compares the results of a case on a device and on the CPU."""
    from .checks.comparison import Likeness, compare

    likeness = compare(*pair, device)
    if likeness == Likeness.SAME:
        return Verdict(same_bits=1)
    text = write(device, exact=True)
    return Verdict(
        same_bits=0, inexact=Inexact(1, "not bitwise equal to the CPU", text)
    )


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
    """Returns whether a function returns a value, without nested functions."""
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
    """Returns whether a statement imports from this package."""
    if not isinstance(node, ast.ImportFrom):
        return False
    return node.level > 0 or (node.module or "").startswith(__package__)


def _borrowed(
    function: Callable[..., Any], body: list[ast.stmt], wanted: set[str]
) -> list[str]:
    """Returns the texts that a function's module imports from this package."""
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
    """Writes a program that calls a function, with the required parts of its module.

    Args:
        function: A function of a device, at the top of its module.
        device: The device that it is called with.
        words: The further arguments.
        call: The call in the program, by default with the device and words.
        exact: Whether results must be bitwise equal to the CPU's.
    """
    path = inspect.getsourcefile(function)
    text = Path(path or "").read_text(encoding="utf-8")
    body = ast.parse(text).body
    wanted, chosen = {function.__name__}, set()
    # Decorators of this package create cases; other decorators belong to the program.
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
                continue  # of this package: only decorators use it
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
