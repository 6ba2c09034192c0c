# SPDX-License-Identifier: BSD-3-Clause
"""``torch.cuda.set_sync_debug_mode``: warns of host waits, or refuses them.

It reports operators that make the host wait on CUDA, in the thread that set the mode
and in its backward passes.
"""

from __future__ import annotations

import warnings
from typing import Any

_OFF, _WARN, _ERROR = range(3)
_level = _OFF
_modes: list[Any] = []  # the one of dispatch, and the one of functions


def check(cause: str) -> None:
    """Reports a wait outside of operators."""
    if _level == _OFF:
        return
    from torch_openreg._lines import user_line

    _report(f"{cause}, {user_line(0)}")


def _report(wait: str) -> None:
    message = f"called a synchronizing CUDA operation: {wait}"
    if _level == _ERROR:
        raise RuntimeError(message)
    if _level == _WARN:
        warnings.warn(message, stacklevel=3)


def _set(level: int) -> None:
    global _level
    if level not in (_OFF, _WARN, _ERROR):
        raise RuntimeError(
            f"debug_mode: expected 0 (default), 1 (warn) or 2 (error), got {level!r}"
        )
    _level = level
    if level == _OFF:
        _leave()
    elif not _modes:
        _enter()


def _enter() -> None:
    from torch_openreg.testing import _host_sync

    class Watch(_host_sync._Watch):  # type: ignore[no-untyped-call]
        def note(self, cause: str) -> None:
            if _level == _OFF:
                return
            super().note(cause)
            if self.found:
                wait = self.found.pop()
                _report(f"{wait.cause}, {wait.line}")

    watch = Watch()
    _modes.extend((watch, _host_sync._WatchFunctions(watch)))
    for mode, stack in zip(_modes, _stacks(), strict=True):
        _change(stack, mode, enters=True)


def _leave() -> None:
    for mode, stack in zip(_modes, _stacks(), strict=False):
        _change(stack, mode, enters=False)
    _modes.clear()


def _stacks() -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Returns PyTorch's modules for both modes, with their lists of current modes."""
    from torch import overrides
    from torch.utils import _python_dispatch

    return (
        (_python_dispatch, _python_dispatch._get_current_dispatch_mode_stack),
        (overrides, overrides._get_current_function_mode_stack),
    )


def _change(stack: tuple[Any, Any], mode: Any, *, enters: bool) -> None:
    """Adds a mode below all others, or removes it from any place.

    The other modes belong to ``with`` statements, each of which removes the top one.
    """
    module, current = stack
    others = [module._pop_mode() for _ in current()]
    if enters:
        module._push_mode(mode)
    for other in reversed(others):
        if other is not mode:
            module._push_mode(other)


NAMES: dict[str, object] = {
    "_cuda_set_sync_debug_mode": _set,
    "_cuda_get_sync_debug_mode": lambda: _level,
}
