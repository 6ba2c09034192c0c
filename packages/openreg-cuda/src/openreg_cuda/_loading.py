# SPDX-License-Identifier: BSD-3-Clause
"""Loads the device at the moments of ``import torch`` that its parts need.

1. Before ``torch._C``: the library of openreg-aten, because ``torch._C`` creates the
   hooks of CUDA when it is loaded, and keeps them.
2. After ``torch._C``, before ``torch.cuda``: the names that a CPU build lacks, because
   ``torch.cuda`` replaces missing base classes with dummies.
3. At the end: replacements for functions of ``torch`` itself.

Python imports this module at its start, so it imports only what is loaded already.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

REPORT = "OPENREG_CUDA_REPORT"  # 1: report calls that have a form for every device

_prepared = False
_named = False


class SimulationWarning(UserWarning):
    """Reports once per process that the CUDA devices are simulated."""


class Finder:
    """Finds a submodule, once, and calls functions before and after its import.

    Args:
        name: The module's name.
        before: Called before the module is found.
        after: Called with the module when it is loaded.
    """

    def __init__(
        self,
        name: str,
        before: Callable[[], None],
        after: Callable[[ModuleType], None],
    ) -> None:
        self._name = name
        self._before = before
        self._after = after
        sys.meta_path.insert(0, self)  # type: ignore[arg-type]

    def find_spec(
        self, name: str, path: list[str] | None = None, target: object = None
    ) -> ModuleSpec | None:
        del target
        if name != self._name or path is None:
            return None
        self._before()
        sys.meta_path.remove(self)  # type: ignore[arg-type]
        spec = PathFinder.find_spec(name, path)
        if spec is not None:
            self._call_after(spec)
        return spec

    def _call_after(self, spec: ModuleSpec) -> None:
        loader = spec.loader
        assert loader is not None
        execute = loader.exec_module

        def execute_and_call(module: ModuleType) -> None:
            execute(module)
            self._after(module)

        loader.exec_module = execute_and_call  # type: ignore[method-assign]


def prepare() -> None:
    """Waits for the import of ``torch._C``.

    Raises:
        ImportError: If it is imported already, or openreg-runtime has read another
            device type.
    """
    global _prepared
    if _prepared:
        return
    _check_order()
    _check_settings()
    _prepared = True
    Finder("torch._C", _load_device, _add_names)


def complete() -> None:
    """Registers the device, and replaces what CPU builds compile out.

    Raises:
        ImportError: If torch was imported before this package.
    """
    if not _named:
        _check_order()
    from openreg_cuda import _completion

    _completion.complete()


def is_autoload_enabled() -> bool:
    """Returns whether ``import torch`` loads backends, which completes the device."""
    return os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD", "1") == "1"


def _check_settings() -> None:
    runtime = sys.modules.get("openreg_runtime")
    if runtime is not None and not runtime.is_cuda():
        raise ImportError(
            "openreg_runtime was imported first, and has read its settings: set "
            "OPENREG_DEVICE=cuda in the environment, or call enable() before",
            name="openreg_cuda",
        )


def _check_order() -> None:
    if "torch._C" in sys.modules:
        raise ImportError(
            "OPENREG_DEVICE=cuda: torch was imported before openreg_cuda, which must "
            "load the device first. Set the variable before Python starts, or import "
            "openreg_cuda before torch",
            name="openreg_cuda",
        )


def _load_device() -> None:
    import _openreg_early

    _openreg_early.load()


def _add_names(module: ModuleType) -> None:
    global _named
    from openreg_cuda import _names

    _names.add_to(module)
    _named = True
