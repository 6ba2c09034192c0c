# SPDX-License-Identifier: BSD-3-Clause
"""Finds the places where a program makes the host wait for a device.

A dispatch mode records operators, which are compared with the table of waits on CUDA.
Printing, tensors from lists and list indices disable dispatch modes, so a function mode
records them. Waits for devices, streams and events come from the GPU trace.
"""

from __future__ import annotations

import numbers
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from torch_openreg._composite import decompose
from torch_openreg._lines import user_line
from torch_openreg.openreg import _gpu_trace
from torch_openreg.openreg._utils import device_type

from ._cuda_waits import cause_of_cuda_wait
from ._own_work import is_own_work

# Functions that create a tensor from numbers and copy it to the device.
_FROM_DATA: dict[Callable[..., Any], str] = {
    torch.tensor: "torch.tensor",
    torch.as_tensor: "torch.as_tensor",
    torch.asarray: "torch.asarray",
    torch.Tensor.new_tensor: "Tensor.new_tensor",
    torch.Tensor.new: "Tensor.new",
}
_METHODS = (torch.Tensor.new_tensor, torch.Tensor.new)


class HostSync(NamedTuple):
    """A place where the host waited for a device.

    Attributes:
        cause: The operator or wait, such as ``aten::nonzero`` or
            ``Stream.synchronize``.
        line: The line of the program: ``file:number: text``.
    """

    cause: str
    line: str


class _Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records waiting operators, and waits of the thread that entered it."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: list[HostSync] = []
        self.thread = threading.get_ident()
        self.number = False  # while a number is assigned to elements

    def note(self, cause: str) -> None:
        if is_own_work():
            return
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
        cause = cause_of_cuda_wait(func, args, kwargs, self.number)
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
        kwargs = kwargs or {}
        if func in (torch.Tensor.__getitem__, torch.Tensor.__setitem__):
            return self._watch_index(func, args)
        result = func(*args, **kwargs)
        if func in _FROM_DATA:
            # "obj" is asarray's name for it.
            named = [kwargs.get(name) for name in ("data", "obj")]
            self._watch_data(
                _FROM_DATA[func], [*args[func in _METHODS :], *named], result
            )
        elif func is torch.Tensor.__repr__ and _is_on_device(args[0]):
            self.watch.note("Tensor.__repr__")
        return result

    def _watch_data(self, name: str, data: list[Any], result: torch.Tensor) -> None:
        if any(isinstance(each, torch.Tensor) for each in data):
            return
        if any(map(_is_on_device, tree_leaves(data))):
            self.watch.note(f"{name} of the device's numbers")
        elif _is_on_device(result) and result.numel():
            self.watch.note(f"{name} from the host's data")

    def _watch_index(self, func: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        seen = len(self.watch.found)
        assigned = args[2] if len(args) > 2 else None
        self.watch.number = isinstance(assigned, numbers.Number)
        try:
            result = func(*args)
        finally:
            self.watch.number = False
        copies = _is_on_device(args[0]) and _has_sequence(args[1])
        if copies and not any(
            "from cpu to" in x.cause for x in self.watch.found[seen:]
        ):
            self.watch.note(
                f"Tensor.{func.__name__} with an index from the host's data"
            )
        return result


def _is_on_device(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.device.type == device_type()


def _has_sequence(index: object) -> bool:
    """Returns whether PyTorch converts a part of an index from a sequence to a tensor.

    As in NumPy, a short list counts as a tuple if it contains more than numbers.
    """
    parts = (list, tuple, slice, range, torch.Tensor, type(...), type(None))
    if isinstance(index, list) and len(index) < 32:
        whole = not any(isinstance(each, parts) for each in index)
    else:
        whole = not isinstance(index, tuple)
    each_part = [index] if whole else index
    assert isinstance(each_part, (list, tuple))
    return any(isinstance(each, (list, tuple, range)) and each for each in each_part)


_watches: list[_Watch] = []
_lock = threading.Lock()
_tracing = False


def _start_tracing() -> None:
    """Registers for the GPU trace, only once, because PyTorch cannot disable it."""
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
    """Fails if the host waits for a device in the block, as it would on CUDA.

    A wait makes a program on a real accelerator slow, because the device runs out of
    work: reading a value (``item()``, ``tolist()``, ``bool()``, printing), operators
    whose shape depends on data (``nonzero``, ``unique``, indexing with a mask),
    operators that CUDA implements with a wait (``linalg.eigh``, ``histc``), indices,
    tensors and copies that come from the host without ``non_blocking=True``, and
    ``synchronize`` of devices, streams and events.

    It covers operators of the entering thread and of its backward passes. It does not
    cover operators below another dispatch mode that does not pass them on, or waits of
    code that calls the runtime without PyTorch.

    Yields:
        The waits so far, for programs that look at them before the end.

    Raises:
        AssertionError: At the end, if there was a wait; it lists each with its line. An
            error of the block itself takes precedence.
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
