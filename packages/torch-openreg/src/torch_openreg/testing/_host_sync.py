# SPDX-License-Identifier: BSD-3-Clause
"""Finds where a program makes the host wait for a device.

Operators are seen by a dispatch mode: those that PyTorch tags with a result that
depends on data, and copies between host and device that are not asynchronous. Printing
and tensors from lists switch dispatch modes off, and are seen by a function mode. Waits
for devices, streams and events come from the GPU trace.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from torch_openreg._composite import decompose
from torch_openreg._lines import user_line
from torch_openreg._waits import cause_of_wait
from torch_openreg.openreg import _gpu_trace
from torch_openreg.openreg._utils import device_type

# What makes a tensor of numbers, and copies it to the device.
_FROM_DATA: dict[Callable[..., Any], str] = {
    torch.tensor: "torch.tensor",
    torch.as_tensor: "torch.as_tensor",
    torch.asarray: "torch.asarray",
    torch.Tensor.new_tensor: "Tensor.new_tensor",
}


class HostSync(NamedTuple):
    """A place where the host waited for a device.

    Attributes:
        cause: Operator or wait, such as ``aten::nonzero`` or ``Stream.synchronize``.
        line: The line of the program: ``file:number: text``.
    """

    cause: str
    line: str


class _Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes operators that wait, and waits of the thread that entered it."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: list[HostSync] = []
        self.thread = threading.get_ident()

    def note(self, cause: str) -> None:
        self.found.append(HostSync(cause, user_line(self.thread)))

    def __torch_dispatch__(
        self,
        func: torch._ops.OpOverload,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        del types
        kwargs = kwargs or {}
        result = decompose(self, func, args, kwargs)
        if result is not NotImplemented:
            return result
        cause = cause_of_wait(func, args, kwargs)
        result = func(*args, **kwargs)
        if cause is not None:
            self.note(cause)
        return result


class _WatchFunctions(TorchFunctionMode):
    def __init__(self, watch: _Watch) -> None:
        super().__init__()
        self.watch = watch

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        del types
        result = func(*args, **(kwargs or {}))
        if func in _FROM_DATA:
            # "obj" is asarray's name for it.
            named = [(kwargs or {}).get(name) for name in ("data", "obj")]
            data = [*args, *named][func is torch.Tensor.new_tensor :]
            copied = result.device.type == device_type() and result.numel()
            if copied and not any(isinstance(x, torch.Tensor) for x in data):
                self.watch.note(f"{_FROM_DATA[func]} from the host's data")
        elif func is torch.Tensor.__repr__ and args[0].device.type == device_type():
            self.watch.note("Tensor.__repr__")
        return result


_watches: list[_Watch] = []
_lock = threading.Lock()
_tracing = False


def _start_tracing() -> None:
    """Listens to the GPU trace, once: PyTorch does not switch it off again."""
    global _tracing
    with _lock:
        if _tracing:
            return
        _gpu_trace.activate("assert_no_host_sync:")

        def listener(cause: str) -> Callable[..., None]:
            def listen(*_: int) -> None:
                for watch in _watches:
                    if watch.thread == threading.get_ident():
                        watch.note(cause)

            return listen

        _gpu_trace.DeviceSynchronizationCallbacks.add_callback(listener("synchronize"))
        _gpu_trace.StreamSynchronizationCallbacks.add_callback(
            listener("Stream.synchronize")
        )
        _gpu_trace.EventSynchronizationCallbacks.add_callback(
            listener("Event.synchronize")
        )
        _tracing = True


@contextmanager
def assert_no_host_sync() -> Iterator[list[HostSync]]:
    """Fails if the host waits for a device in the block.

    A wait is what makes a program on a real accelerator slow, as the device then runs
    out of work: reading a value (``item()``, ``tolist()``, ``bool()``, printing),
    operators whose shape depends on data (``nonzero``, ``unique``, indexing with a
    mask), copies between host and device without ``non_blocking=True``, and
    ``synchronize`` of devices, streams and events.

    Operators are seen in the thread that enters, and in backward passes that it
    starts. What is not seen: operators below another dispatch mode that does not pass
    them on, and waits of code that calls the runtime without PyTorch.

    Yields:
        The waits so far, for programs that look at them before the end.

    Raises:
        AssertionError: At the end, if there was a wait; it names each with its line. An
            error of the block itself goes on instead.
        RuntimeError: If ``OPENREG_DISABLE`` names ``gpu_trace`` or ``device_module``.
    """
    _start_tracing()
    watch = _Watch()
    _watches.append(watch)
    try:
        with watch, _WatchFunctions(watch):
            yield watch.found
    finally:
        _watches.remove(watch)
    if watch.found:
        lines = [
            f"  {sync.cause}{f' ({count} times)' if count > 1 else ''}, {sync.line}"
            for sync, count in Counter(watch.found).items()
        ]
        raise AssertionError(
            f"the host waited for the device {len(watch.found)} times:\n"
            + "\n".join(lines)
        )
