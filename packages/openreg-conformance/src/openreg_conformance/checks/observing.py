# SPDX-License-Identifier: BSD-3-Clause
"""Runs a program on the CPU and on a device, and compares all that it observes."""

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

# What names the device in messages, reprs and names of types.
_SPELLINGS = (
    (r", device='[a-z]+(:0)?'", ""),  # the repr of tensors
    # PyTorch renames the types of the devices that it knows: processErrorMsg in
    # torch/csrc/Exceptions.cpp.
    (r"\b{device}(\w+)Type\b", r"torch.\1Tensor"),
    (r"torch\.{device}\.(?=(sparse\.)?\w+(Tensor|Storage))", "torch."),
    (r"(PrivateUse1|CUDA|XPU|MPS|CPU)\b", "<Device>"),
    (r'"(\w+)_(cpu|{device})((_\w*)?" not implemented for)', r'"\1_<device>\3'),
    (r"0x[0-9a-f]+", "<address>"),
    (r"\b{device}(:0)?\b", "<device>"),
)


class Host:
    """Marks a tensor that belongs in host memory, whatever the device."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


def words(text: object, device: str) -> str:
    """Text, with one name for the device that it is of."""
    text = str(text)
    for pattern, name in _SPELLINGS:
        text = re.sub(pattern.replace("{device}", device), name, text)
    return text


def refusal(call: Callable[[], object], expected: str) -> str:
    """The type and the message of the exception that a call must raise.

    Args:
        call: What is to be refused.
        expected: Words of the message, so that no slip in the program passes.
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
    """All values, in host memory."""
    return [part.cpu().clone() for part in parts(tensor.detach())]


def _close(ones: list[Tensor], others: list[Tensor]) -> bool:
    """Whether values are within the tolerance of ``torch.testing.assert_close``."""
    try:
        torch.testing.assert_close(ones, others, equal_nan=True)
    except AssertionError:
        return False
    return True


class _Record:
    """Makes of an observation one flat table of plain facts."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._tensors: list[tuple[str, Tensor]] = []
        self.facts: dict[str, object] = {}
        self.values: dict[str, list[Tensor]] = {}  # by the path of their fact
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
        """The path of the first tensor observed that is the same in some sense."""
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
            # Python prints floats so that each has a text of its own.
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
    """Uses what PyTorch warns of when it is first used, whatever the device.

    Its decompositions for jvp are compiled, and sparse CSR tensors are in beta state.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        importlib.import_module("torch._decomp.decompositions_for_jvp")
        torch.eye(1).to_sparse_csr()


@contextmanager
def _warnings_of_every_call() -> Iterator[list[warnings.WarningMessage]]:
    """Records warnings, also those that PyTorch gives once in a process."""
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
    """The warnings in order; those of C++ once, however often its code is reached."""
    texts: list[str] = []
    for each in caught:
        text = words(f"{each.category.__name__}: {each.message}", device)
        if "(Triggered internally" not in text or text not in texts:
            texts.append(text)
    return texts


def observe(
    function: Callable[..., object], device: str, /, **arguments: object
) -> dict[str, object]:
    """Runs a program on one device; returns the facts of what it returns.

    For each tensor they are its metadata, values, version, autograd state, and the
    first tensor of the observation that is the same object or has the same storage.
    The warnings are a fact too. An exception is the program's own affair.
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
    """The paths of the facts that differ."""
    return [
        path
        for path in dict.fromkeys([*other, *one])
        if one.get(path, _MISSING) != other.get(path, _MISSING)
    ]


def disagreements(one: dict[str, object], other: dict[str, object]) -> list[str]:
    """The facts that differ, one in a line."""
    return [
        f"{path}: {one.get(path, _MISSING)}, expected {other.get(path, _MISSING)}"
        for path in _differing(one, other)
    ]


def difference(
    function: Callable[..., object], device: str, /, **arguments: object
) -> str:
    """Runs a program on the CPU and on a device; says how the device differs."""
    expected = observe(function, HOST, **arguments)
    return _told(disagreements(observe(function, device, **arguments), expected))


def _told(found: list[str]) -> str:
    return "\n".join(["the device differs from the CPU:", *found]) if found else ""


def _same_but_for_values(one: _Record, other: _Record, draws: bool) -> bool:
    """Whether nothing differs but random numbers, or values within the tolerance."""
    return all(
        path in one.values
        and path in other.values
        and (draws or _close(one.values[path], other.values[path]))
        for path in _differing(one.facts, other.facts)
    )


def _word(value: object) -> str:
    """A value of a parameter, for the name of a case."""
    if isinstance(value, dict):
        return ",".join(f"{key}={each}" for key, each in value.items()) or "default"
    return str(getattr(value, "__name__", value)).replace(" ", "_")


class Programs:
    """Programs of a module: functions of a device that return what they observe.

    Each is a case. It runs on the CPU and on the device; its observation is a nest of
    dicts, lists and tuples of tensors and plain values: see ``observe``.

    Args:
        module: The ``__name__`` of the module.
        mechanism: A key of ``MECHANISMS``.
        draws: Whether they draw from generators of their own. That a program draws
            from the default one of the device is seen, unless it seeds the host's
            again, or keeps its state, after that.
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
        """Gives a program arguments beside the device: it is a case with each value.

        Args:
            names: Of one argument, or of several.
            values: Of the argument, or tuples of values of the arguments.
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
        """Makes cases of a program; what it finds out is the name of the function."""
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
        """Lists the cases of a level: all of them above ``"smoke"``."""
        if level != LEVELS[0]:
            yield from self._cases


_SHARE = 0.1  # of those whom a mechanism concerns: how many a detail of it does


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
    # From the device's own generator, if the host's is in another state beside it.
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
    """Writes a program that calls a function with the CPU and with a device."""
    call = _PROGRAM.format(
        spellings=f"_SPELLINGS = {_SPELLINGS!r}",
        words=inspect.getsource(words),
        name=function.__name__,
        device=device,
        options="".join(f", {key}={_literal(v)}" for key, v in arguments.items()),
    )
    return program_of(function, device, call=call)


def _literal(value: Any) -> str:
    """A value as an expression."""
    return f'float("{value}")' if isinstance(value, float) else repr(value)
