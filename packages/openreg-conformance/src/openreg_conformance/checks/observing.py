# SPDX-License-Identifier: BSD-3-Clause
"""Runs a program on the CPU and on a device, and compares all observations."""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch._C import DispatchKey

from openreg_conformance.case import (
    HOST,
    LEVELS,
    Case,
    Inexact,
    Verdict,
    program_of,
)

from .mirrors import parts

# Patterns of the device in messages, reprs and type names.
_SPELLINGS = (
    (r", device='[a-z]+(:0)?'", ""),  # the repr of tensors
    # PyTorch renames types of the built-in devices: processErrorMsg in
    # torch/csrc/Exceptions.cpp.
    (r"\b{device}(\w+)Type\b", r"torch.\1Tensor"),
    (r"torch\.{device}\.(?=(sparse\.)?\w+(Tensor|Storage))", "torch."),
    (r"(PrivateUse1|CUDA|XPU|MPS|CPU)\b", "<Device>"),
    (r'"(\w+)_(cpu|{device})((_\w*)?" not implemented for)', r'"\1_<device>\3'),
    (r"0x[0-9a-f]+", "<address>"),
    (r"\b{device}(:0)?\b", "<device>"),
)


class Host:
    """Marks a tensor that is in host memory for every device."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


def words(text: object, device: str) -> str:
    """Returns a text with a uniform device name."""
    text = str(text)
    for pattern, name in _SPELLINGS:
        text = re.sub(pattern.replace("{device}", device), name, text)
    return text


def refusal(call: Callable[[], object], expected: str) -> str:
    """Returns the type and the message of the exception that a call must raise.

    Args:
        call: The call that must fail.
        expected: Part of the message, so that a mistake in the program does not pass.
    """
    try:
        call()
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        if expected not in text:
            raise
        return text
    raise AssertionError(f"nothing was raised, expected: {expected}")


def _version(tensor: Tensor) -> int | str:
    return "inference" if tensor.is_inference() else tensor._version


def _values(tensor: Tensor) -> list[Tensor]:
    """Returns all values in host memory."""
    return [part.cpu().clone() for part in parts(tensor.detach())]


def _close(ones: list[Tensor], others: list[Tensor]) -> bool:
    """Returns whether ``torch.testing.assert_close`` accepts the values."""
    try:
        torch.testing.assert_close(ones, others, equal_nan=True)
    except AssertionError:
        return False
    return True


class _Record:
    """Converts an observation to a flat table of facts."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._tensors: list[tuple[str, Tensor]] = []
        self.facts: dict[str, object] = {}
        self.values: dict[str, list[Tensor]] = {}  # by the path of the fact
        self.drawn = torch.get_rng_state()  # of the host, at the end

    def _words(self, text: object) -> str:
        return words(text, self._device)

    def add(self, path: str, value: Any) -> None:
        if isinstance(value, Host):
            self._add_tensor(path, value.tensor, "cpu")
        elif isinstance(value, Tensor):
            self._add_tensor(path, value, self._device)
        elif isinstance(value, dict):
            self.facts[f"{path} has"] = self._words(list(value))
            for key, each in value.items():
                self.add(f"{path}.{key}", each)
        elif isinstance(value, list | tuple):
            self.facts[f"{path} has"] = len(value)
            for index, each in enumerate(value):
                self.add(f"{path}[{index}]", each)
        elif isinstance(value, nn.Module):
            raise TypeError(f"{path}: return the tensors of the module")
        else:
            text = str(value) if isinstance(value, torch.device) else value
            text = self._words(text if isinstance(text, str) else repr(text))
            self.facts[path] = f"{type(value).__name__} {text!r}"

    def _first(self, path: str, same: Callable[[Tensor], bool]) -> str:
        """Returns the path of the first observed tensor that satisfies a predicate."""
        return next((name for name, each in self._tensors if same(each)), path)

    def _add_tensor(self, path: str, tensor: Tensor, device: str) -> None:
        if torch._C._dispatch_keys(tensor).has(DispatchKey.Python):
            raise TypeError(f"{path}: return the tensors that the subclass wraps")
        with torch._C.DisableTorchFunctionSubclass(), torch.no_grad():
            self.values[f"{path} values"] = _values(tensor)
            self.facts |= {
                f"{path} {name}": fact
                for name, fact in self._describe(path, tensor, device).items()
            }
        self._tensors.append((path, tensor))

    def _describe(self, path: str, tensor: Tensor, device: str) -> dict[str, object]:
        on = tensor.device.type
        facts: dict[str, object] = {
            "type": type(tensor).__qualname__,
            "is": self._first(path, lambda each: each is tensor),
            "device": "as expected" if on == device else on,
            "dtype": tensor.dtype,
            "shape": tuple(tensor.shape),
            "layout": tensor.layout,
            "requires_grad": tensor.requires_grad,
            "is_leaf": tensor.is_leaf,
            "grad_fn": type(tensor.grad_fn).__name__,
            "version": _version(tensor),
            # Python's text of a float is unique.
            "values": str([each.tolist() for each in self.values[f"{path} values"]]),
        }
        if tensor.layout == torch.strided:
            storage = tensor.untyped_storage()
            facts |= {
                "stride": tensor.stride(),
                "offset": tensor.storage_offset(),
                "bytes": storage.nbytes(),
                "storage": self._first(
                    path,
                    lambda each: (
                        each.layout == torch.strided
                        and each.untyped_storage()._cdata == storage._cdata
                    ),
                ),
                "is_view": tensor._is_view(),
                "conj, neg": (tensor.is_conj(), tensor.is_neg()),
            }
        elif tensor.layout == torch.sparse_coo:
            facts["is_coalesced"] = tensor.is_coalesced()
        return facts


@functools.cache
def _use_what_warns_once() -> None:
    """Triggers PyTorch's one-time warnings that do not depend on the device.

    They concern compiled jvp decompositions and the beta state of sparse CSR tensors.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        importlib.import_module("torch._decomp.decompositions_for_jvp")
        torch.eye(1).to_sparse_csr()


@contextmanager
def _warnings_of_every_call() -> Iterator[list[warnings.WarningMessage]]:
    """Records warnings, including PyTorch's once-per-process warnings."""
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    torch.storage._reset_warn_typed_storage_removal()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield caught
    finally:
        torch.set_warn_always(before)


def _texts(caught: list[warnings.WarningMessage], device: str) -> list[str]:
    """Returns the warnings in order; C++ warnings only once."""
    texts: list[str] = []
    for each in caught:
        text = words(f"{each.category.__name__}: {each.message}", device)
        if "(Triggered internally" not in text or text not in texts:
            texts.append(text)
    return texts


def observe(
    function: Callable[..., object], device: str, /, **arguments: object
) -> dict[str, object]:
    """Runs a program on a device and returns the facts of its observation.

    The facts of a tensor are its metadata, values, version, autograd state, and the
    first tensor of the observation that is the same object or has the same storage.
    Warnings are a fact, too. Exceptions must be handled by the program.
    """
    return _observed(function, device, arguments).facts


def _observed(
    function: Callable[..., object], device: str, arguments: dict[str, object]
) -> _Record:
    _use_what_warns_once()
    torch.manual_seed(0)
    record = _Record(device)
    with _warnings_of_every_call() as caught:
        result = function(device=device, **arguments)
    record.add("result", result)
    record.facts["warnings"] = _texts(caught, device)
    record.drawn = torch.get_rng_state()
    return record


_MISSING = "nothing"


def _differing(one: dict[str, object], other: dict[str, object]) -> list[str]:
    """Returns the paths of the facts that differ."""
    return [
        path
        for path in dict.fromkeys([*other, *one])
        if one.get(path, _MISSING) != other.get(path, _MISSING)
    ]


def disagreements(one: dict[str, object], other: dict[str, object]) -> list[str]:
    """Returns the facts that differ, one per line."""
    return [
        f"{path}: {one.get(path, _MISSING)}, expected {other.get(path, _MISSING)}"
        for path in _differing(one, other)
    ]


def difference(
    function: Callable[..., object], device: str, /, **arguments: object
) -> str:
    """Runs a program on the CPU and on a device; returns the differences."""
    expected = observe(function, HOST, **arguments)
    return _told(disagreements(observe(function, device, **arguments), expected))


def _told(found: list[str]) -> str:
    return "\n".join(["the device differs from the CPU:", *found]) if found else ""


def _same_but_for_values(one: _Record, other: _Record, draws: bool) -> bool:
    """Returns whether only random numbers differ, or values within the tolerance."""
    return all(
        path in one.values
        and path in other.values
        and (draws or _close(one.values[path], other.values[path]))
        for path in _differing(one.facts, other.facts)
    )


def _word(value: object) -> str:
    """Returns a parameter value as a part of a case name."""
    if isinstance(value, dict):
        return ",".join(f"{key}={each}" for key, each in value.items()) or "default"
    return str(getattr(value, "__name__", value)).replace(" ", "_")


class Programs:
    """The programs of a module: functions of a device that return observations.

    Each is a case, which runs on the CPU and on the device. An observation consists of
    nested dicts, lists and tuples of tensors and plain values: see ``observe``.

    Args:
        module: The ``__name__`` of the module.
        mechanism: A key of ``MECHANISMS``.
        draws: Whether they draw from their own generators. Draws from the device's
            default generator are detected, unless the program seeds the host's
            generator again or keeps its state afterwards.
    """

    def __init__(
        self, module: str, mechanism: str = "semantics", *, draws: bool = False
    ) -> None:
        self._suite, self._topic = module.split(".")[-2:]
        self._mechanism = mechanism
        self._draws = draws
        self._cases: list[Case] = []

    @staticmethod
    def each(names: str | tuple[str, ...], values: Iterable[Any]) -> Any:
        """Adds arguments to a program: each value is a case.

        Args:
            names: The name of an argument, or several names.
            values: The values of the argument, or tuples for several arguments.
        """

        def note(function: Any) -> Any:
            chosen = [
                {names: each}
                if isinstance(names, str)
                else dict(zip(names, each, strict=True))
                for each in values
            ]
            before = getattr(function, "arguments", [{}])
            function.arguments = [b | c for b in before for c in chosen]
            return function

        return note

    def program(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Turns a program into cases; the function name is the statement."""
        from openreg_conformance.mechanisms import MECHANISMS

        topic = self._topic.replace("_", " ")
        said = function.__name__.replace("_", " ")
        for arguments in getattr(function, "arguments", [{}]):
            words = [_word(each) for each in arguments.values()]
            case = Case(
                name="/".join([self._suite, self._topic, function.__name__, *words]),
                mechanism=self._mechanism,
                subject=topic,
                title=f"{said[0].upper()}{said[1:]}{''.join(f', {w}' for w in words)}.",
                run=functools.partial(_run, function, arguments, self._draws),
                program=functools.partial(_program, function, arguments),
                users=MECHANISMS[self._mechanism].users * _SHARE,
            )
            self._cases.append(case)
        return function

    def cases(self, level: str) -> Iterator[Case]:
        """Lists the cases of a level: all above ``"smoke"``."""
        if level != LEVELS[0]:
            yield from self._cases


_SHARE = 0.1  # of a mechanism's users: the share that a detail concerns


def _run(
    function: Callable[..., object],
    arguments: dict[str, object],
    draws: bool,
    device: str,
) -> Verdict:
    expected = _observed(function, HOST, arguments)
    found = _observed(function, device, arguments)
    told = _told(disagreements(found.facts, expected.facts))
    if not told:
        return Verdict(same_bits=1 if expected.values else None)
    # The device's own generator was used, if the host generators' states differ.
    draws = draws or not found.drawn.equal(expected.drawn)
    if _same_but_for_values(found, expected, draws):
        program = _program(function, arguments, device)
        return Verdict(same_bits=0, inexact=Inexact(1, told, program))
    return Verdict(passed=0, message=told)


_PROGRAM = """\
import re

{spellings}


{words}

def facts(value, device):
    if isinstance(value, torch.Tensor):
        version = "inference" if value.is_inference() else value._version
        values = value.detach().cpu().to_dense().tolist()
        stride = value.stride() if value.layout == torch.strided else None
        about = value.dtype, value.shape, stride, value.requires_grad, value.is_leaf
        return str((values, version, type(value.grad_fn).__name__, *about))
    if isinstance(value, dict):
        return {{key: facts(each, device) for key, each in value.items()}}
    if isinstance(value, (list, tuple)):
        return [facts(each, device) for each in value]
    if hasattr(value, "tensor"):
        return facts(value.tensor, device)
    return words(value, device)


torch.manual_seed(0)
expected = facts({name}(device="cpu"{options}), "cpu")
torch.manual_seed(0)
result = facts({name}(device="{device}"{options}), "{device}")
print(result, "expected", expected, sep="\\n")
assert result == expected"""


def _program(
    function: Callable[..., Any], arguments: dict[str, Any], device: str
) -> str:
    """Writes a program that calls a function on the CPU and on a device."""
    call = _PROGRAM.format(
        spellings=f"_SPELLINGS = {_SPELLINGS!r}",
        words=inspect.getsource(words),
        name=function.__name__,
        device=device,
        options="".join(f", {key}={_literal(v)}" for key, v in arguments.items()),
    )
    return program_of(function, device, call=call)


def _literal(value: Any) -> str:
    """Returns a value as an expression."""
    return f'float("{value}")' if isinstance(value, float) else repr(value)
