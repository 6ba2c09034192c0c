# SPDX-License-Identifier: BSD-3-Clause
"""Runs a program on the CPU and on the device, and compares all that it observes."""

from __future__ import annotations

import functools
import inspect
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch._C import DispatchKey

from openreg_conformance.checks.mirrors import parts

DEVICE = "openreg"

# What names the device in messages, reprs and names of types.
_SPELLINGS = (
    (re.compile(r", device='[a-z]+(:0)?'"), ""),  # the repr of tensors
    # PyTorch renames the types of the devices that it knows: processErrorMsg in
    # torch/csrc/Exceptions.cpp.
    (re.compile(r"\bopenreg(\w+)Type\b"), r"torch.\1Tensor"),
    (re.compile(r"torch\.openreg\.(?=(sparse\.)?\w+(Tensor|Storage))"), "torch."),
    (re.compile(r"(PrivateUse1|CPU)\b"), "<Device>"),
    (re.compile(r"0x[0-9a-f]+"), "<address>"),
)


class Host(NamedTuple):
    """Marks a tensor that belongs in host memory, whatever the device."""

    tensor: Tensor


def words(text: object, device: str) -> str:
    """Text, with one name for the device that it is of."""
    text = str(text)
    for pattern, name in _SPELLINGS:
        text = pattern.sub(name, text)
    return re.sub(rf"\b{device}(:0)?\b", "<device>", text)


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


def _values(tensor: Tensor) -> str:
    """All values; Python prints floats so that each has a text of its own."""
    return str([part.cpu().tolist() for part in parts(tensor.detach())])


class _Record:
    """Makes of an observation one flat table of plain facts."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._tensors: list[tuple[str, Tensor]] = []
        self.facts: dict[str, object] = {}

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
            "values": _values(tensor),
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
    torch.manual_seed(0)
    record = _Record(device)
    with _warnings_of_every_call() as caught:
        result = function(device=device, **arguments)
    record.add("result", result)
    record.facts["warnings"] = _texts(caught, device)
    return record.facts


def disagreements(one: dict[str, object], other: dict[str, object]) -> list[str]:
    """The facts that differ, one in a line."""
    missing = "nothing"
    return [
        f"{path}: {one.get(path, missing)}, expected {other.get(path, missing)}"
        for path in dict.fromkeys([*other, *one])
        if one.get(path, missing) != other.get(path, missing)
    ]


def program(function: Callable[..., object]) -> Callable[..., None]:
    """Makes a test of a program: a function of a device that returns what it observes.

    The program runs on the CPU and on the device. Its observation is a nest of dicts,
    lists and tuples of tensors and plain values; see ``observe``. The program may take
    fixtures and parameters of pytest beside ``device``.
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def test(**arguments: object) -> None:
        expected = observe(function, "cpu", **arguments)
        found = disagreements(observe(function, DEVICE, **arguments), expected)
        if found:
            raise AssertionError(
                "the device differs from the CPU:\n" + "\n".join(found)
            )

    del test.__wrapped__  # pytest would ask for the device
    test.__signature__ = signature.replace(
        parameters=[p for p in signature.parameters.values() if p.name != "device"]
    )
    return test
