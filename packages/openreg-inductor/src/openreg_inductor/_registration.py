# SPDX-License-Identifier: BSD-3-Clause
"""Registers the device in PyTorch's compilers when they are imported.

torch-openreg imports this module during ``import torch``. At that time neither
``torch._dynamo`` nor ``torch._inductor`` may be imported, because that takes seconds.
PyTorch has no hook for their import, so the import system is used.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType


def register() -> None:
    """Registers the device's present name with Dynamo and Inductor, once each.

    For a compiler that is not imported yet, the registration runs on its import. If
    torch-openreg is installed, ``import torch`` has already called this function;
    further calls do nothing.
    """
    register_device_interface()
    register_inductor()
    register_dynamo_backend()
    register_aoti_runner()
    register_aoti_eager()


# [docs: after-import]
def register_device_interface() -> None:
    """Registers the streams, events and properties of the device."""
    _after_import("torch._dynamo.device_interface", _load("_interface"))


def register_inductor() -> None:
    """Registers the code generators for the device and the patches."""
    # This module of Inductor imports all patched modules.
    _after_import("torch._inductor.compile_fx", _load("_backend"))
    _after_import("torch._inductor.cudagraph_trees", _load("_graphs"))
    _after_import("torch.nn.attention.flex_attention", _load("_attention"))


def register_dynamo_backend() -> None:
    """Registers the backend with the device's name."""
    _after_import("torch._dynamo.backends.registry", _load("_dynamo"))


def register_aoti_runner() -> None:
    """Registers the runner of AOTInductor models."""
    # PyTorch reads its table when it loads a model, without running Python.
    _load("_aoti")()


def register_aoti_eager() -> None:
    """Registers the runner of operators that Inductor compiles in eager mode."""
    _load("_aoti", "register_eager")()


# [docs: end]


def _load(name: str, function: str = "register") -> Callable[[], None]:
    """Returns a function that imports a module of this package and registers it."""

    def load() -> None:
        getattr(importlib.import_module(f"openreg_inductor.{name}"), function)()

    return load


class _AfterImport(MetaPathFinder):
    """Calls a function after the first import of each module of a table."""

    def __init__(self) -> None:
        self.calls: dict[str, Callable[[], None]] = {}

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        call = self.calls.get(fullname)
        if call is None:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            call()

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


_finder = _AfterImport()


def _after_import(name: str, call: Callable[[], None]) -> None:
    """Calls a function after a module's import, or now; only the first per module."""
    if name in _finder.calls:
        return
    _finder.calls[name] = call
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    if name in sys.modules:
        importlib.import_module(name)  # waits if another thread is importing it
        call()
