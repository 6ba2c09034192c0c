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
_modes: list[Any] = []  # entered, the outer one first


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
            before = len(self.found)
            super().note(cause)
            if len(self.found) > before:
                wait = self.found[-1]
                _report(f"{wait.cause}, {wait.line}")

    watch = Watch()
    _modes.extend((watch, _host_sync._WatchFunctions(watch)))
    for mode in _modes:
        mode.__enter__()


def _leave() -> None:
    from torch.overrides import _get_current_function_mode as _function_mode
    from torch.utils._python_dispatch import (
        _get_current_dispatch_mode as _dispatch_mode,
    )

    # Modes leave in the reverse order. Below another one, they stay and do nothing.
    current = [_dispatch_mode(), _function_mode()]  # type: ignore[no-untyped-call]
    if _modes and all(x is y for x, y in zip(_modes, current, strict=True)):
        while _modes:
            _modes.pop().__exit__(None, None, None)


NAMES: dict[str, object] = {
    "_cuda_set_sync_debug_mode": _set,
    "_cuda_get_sync_debug_mode": lambda: _level,
}
