# SPDX-License-Identifier: BSD-3-Clause
"""Reports calls of ``torch.cuda`` that PyTorch serves for every device.

The report is a list of lines to change for code that runs on any accelerator. It covers
calls by the program and its libraries, but not calls by PyTorch itself.
"""

from __future__ import annotations

import atexit
import sys
from collections import Counter
from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

import torch

from torch_openreg._lines import Place, caller_place

# The calls for every device. "{}" is the name in torch.cuda.
_FUNCTIONS = {
    "current_device": "torch.accelerator.current_device_index",
    "mem_get_info": "torch.accelerator.get_memory_info",
    "set_device": "torch.accelerator.set_device_index",
    "stream": "the stream as a context manager",
    **dict.fromkeys(
        (
            "current_stream",
            "device_count",
            "empty_cache",
            "get_device_capability",
            "is_available",
            "max_memory_allocated",
            "max_memory_reserved",
            "memory_allocated",
            "memory_reserved",
            "memory_stats",
            "reset_accumulated_memory_stats",
            "reset_peak_memory_stats",
            "set_stream",
            "synchronize",
        ),
        "torch.accelerator.{}",
    ),
    **dict.fromkeys(("manual_seed", "manual_seed_all"), "torch.manual_seed"),
}
_CLASSES = {
    "CUDAGraph": "torch.accelerator.Graph",
    "Event": "torch.Event",
    "Stream": "torch.Stream",
    "StreamContext": "the stream as a context manager",
    "device": "torch.accelerator.device_index",
}
_AMP_CLASSES = {
    "GradScaler": "torch.amp.GradScaler",
    "autocast": "torch.autocast",
}
_MOVES = {"Tensor": torch.Tensor, "Module": torch.nn.Module}


class _Call(NamedTuple):
    name: str
    instead: str
    place: Place


_calls: Counter[_Call] = Counter()


def watch() -> None:
    """Notes calls from now on, and prints the report when the process ends."""
    cuda: Any = torch.cuda
    for name, instead in _FUNCTIONS.items():
        _note(cuda, name, f"torch.cuda.{name}", instead.format(name))
    for module, classes in ((cuda, _CLASSES), (cuda.amp, _AMP_CLASSES)):
        for name, instead in classes.items():
            cls = getattr(module, name)
            method = "__init__" if "__init__" in vars(cls) else "__new__"
            _note(cls, method, f"{module.__name__}.{name}", instead)
    for name, moved in _MOVES.items():
        _note(moved, "cuda", f"{name}.cuda", f"{name}.to(device)")
    atexit.register(_print)


def _note(owner: Any, attribute: str, name: str, instead: str) -> None:
    function: Callable[..., Any] = getattr(owner, attribute)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        place = caller_place(sys._getframe(1))
        if place is not None:
            _calls[_Call(name, instead, place)] += 1
        return function(*args, **kwargs)

    setattr(owner, attribute, staticmethod(call) if attribute == "__new__" else call)


def text() -> str:
    """Returns the report."""
    if not _calls:
        return "openreg_cuda: no call of torch.cuda has a form for every device\n"
    lines = ["openreg_cuda: calls that have a form for every device:"]
    previous = None
    for (name, instead, place), count in sorted(_calls.items()):
        if name != previous:
            lines.append(f"  {name}: use {instead}")
            previous = name
        times = f" ({count} times)" if count > 1 else ""
        lines.append(f"    {place}{times}")
    return "\n".join(lines) + "\n"


def _print() -> None:
    sys.stderr.write(text())
