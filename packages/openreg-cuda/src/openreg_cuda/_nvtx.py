# SPDX-License-Identifier: BSD-3-Clause
"""``torch.cuda.nvtx``: ranges of a thread are ranges of ``torch.profiler``."""

from __future__ import annotations

import threading
from itertools import count
from types import ModuleType

import torch


class _Ranges(threading.local):
    def __init__(self) -> None:
        self.open: list[torch.autograd.profiler.record_function] = []


_ranges = _Ranges()
_started: dict[int, str] = {}
_handles = count(1)


def _push(message: str) -> int:
    entered = torch.autograd.profiler.record_function(message)
    entered.__enter__()  # type: ignore[no-untyped-call]
    _ranges.open.append(entered)
    return len(_ranges.open) - 1


def _pop() -> int:
    if not _ranges.open:
        return -2  # NVTX_NO_PUSH_POP_TRACKING
    _ranges.open.pop().__exit__(None, None, None)
    return len(_ranges.open)


def _start(message: str) -> int:
    # Another thread may end it, which the profiler's ranges do not allow.
    handle = next(_handles)
    _started[handle] = message
    return handle


def _end(handle: int) -> None:
    _started.pop(handle, None)


def _mark(message: str) -> None:
    with torch.autograd.profiler.record_function(message):
        pass


nvtx = ModuleType("torch._C._nvtx", "Ranges of NVTX.")
vars(nvtx).update(
    rangePushA=_push,
    rangePop=_pop,
    rangeStartA=_start,
    rangeEnd=_end,
    markA=_mark,
    deviceRangeStart=lambda message, _: _start(message),
    deviceRangeEnd=lambda handle, _: _end(handle),
)

NAMES: dict[str, object] = {"_nvtx": nvtx}
