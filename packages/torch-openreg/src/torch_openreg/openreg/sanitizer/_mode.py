# SPDX-License-Identifier: BSD-3-Clause
"""Feeds the analysis with operators, by dispatch modes, and with GPU trace events.

A dispatch mode belongs to a thread, and autograd passes it on to its own threads. New
Python threads enter one when they start.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import sys
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import (
    TorchDispatchMode,
    _get_current_dispatch_mode_stack,
)

from openreg_aten import _C
from torch_openreg._composite import decompose
from torch_openreg._lines import user_place
from torch_openreg._settings import looks_for_unwritten
from torch_openreg.openreg import _gpu_trace

from ._analysis import Analysis

if TYPE_CHECKING:
    from types import FrameType

_PLAIN = frozenset(
    {
        torch.Tensor,
        torch.nn.Buffer,
        torch.nn.Parameter,
        torch.nn.UninitializedBuffer,
        torch.nn.UninitializedParameter,
    }
)

# Read once, because a forked child may not use the runtime.
_UNWRITTEN = looks_for_unwritten()

_lock = threading.RLock()
_analysis: Analysis | None = None
_users = 0  # of the analysis: enable(), and blocks in all threads
_enabled = False  # by enable()
_listening = False
_previous_profile: Any = None


class _Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Passes the operators of the entering thread to the analysis."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.thread = threading.get_ident()

    def __torch_dispatch__(
        self,
        func: torch._ops.OpOverload,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        analysis = _analysis
        # Disabled by another thread, or an operator without a kernel.
        if analysis is None or FakeTensor in types:
            return func(*args, **kwargs)
        if not _PLAIN.issuperset(types):
            return NotImplemented  # the subclass calls operators on its wrapped tensors
        result = decompose(self, func, args, kwargs)
        if result is not NotImplemented:
            return result
        _thread.user = self.thread
        call = analysis.begin(func, args, kwargs, user_place(self.thread))
        result = func(*args, **kwargs)
        analysis.end(call, func, result)
        return result


class _Thread(threading.local):
    """The state of a thread.

    Attributes:
        mode: The mode that the thread has entered. Autograd passes it on to other
            threads.
        parts: The number of joins without a leave.
        enabled: Whether one of the parts belongs to :func:`enable`.
        blocks: The number of calls of :func:`start` without :func:`stop`.
        user: The thread for which it works, if it has run operators with the mode.
    """

    mode: _Watch | None = None
    parts = 0
    enabled = False
    blocks = 0
    user: int | None = None


_thread = _Thread()


# ---- on and off


def enable() -> None:
    """Begins an analysis and joins it with the calling thread."""
    global _enabled
    _listen()
    with _lock:
        if not _enabled:
            _begin()
        _enabled = True
    if not _thread.enabled:
        join()
        _thread.enabled = True


def disable() -> None:
    """Ends the analysis of :func:`enable`."""
    global _enabled
    if _thread.enabled:
        leave()
        _thread.enabled = False
    try:
        if _enabled:
            report()
    finally:
        with _lock:
            if _enabled:
                _drop()
            _enabled = False


def start() -> None:
    """Begins or shares an analysis until :func:`stop`.

    Python threads that start in between join it.

    Raises:
        RuntimeError: If ``OPENREG_DISABLE`` leaves out a required mechanism.
    """
    _begin()
    _thread.blocks += 1


def stop() -> None:
    """Ends the analysis if it is no longer shared."""
    _thread.blocks -= 1
    _drop()


def _begin() -> None:
    global _analysis, _users
    _listen()
    with _lock:
        _users += 1
        if _analysis is None:
            _analysis = _new_analysis()
            _watch_new_threads(True)


def _new_analysis() -> Analysis:
    return Analysis(unwritten=_UNWRITTEN)


def _drop() -> None:
    global _users
    with _lock:
        if _users:  # a forked child may leave blocks of its parent
            _users -= 1
        if not _users:
            _end()


def report() -> None:
    """Raises the error of a write without an operator, if one was found.

    Without another user of the analysis it checks once more, because no wait may
    follow.

    Raises:
        UnsynchronizedAccessError: For the first of these writes.
    """
    analysis = _analysis
    if analysis is not None:
        if _users <= 1:
            analysis.find_host_writes(_user_thread(), at_end=True)
        analysis.raise_host_write()


def _end() -> None:
    global _analysis
    with _lock:
        if _analysis is not None:
            _analysis = None
            _watch_new_threads(False)


def _end_with_the_process() -> None:
    try:
        report()
    finally:
        _end()


def is_running() -> bool:
    """Returns whether an analysis is running."""
    return _analysis is not None


def join() -> None:
    """Joins the analysis with the calling thread; joins and leaves are counted."""
    if not any(map(_is_watch, _get_current_dispatch_mode_stack())):
        _thread.mode = _Watch()
        _thread.mode.__enter__()  # type: ignore[no-untyped-call]
    _thread.parts += 1


def leave() -> None:
    """Undoes one join of the calling thread.

    Raises:
        RuntimeError: If it is the last one, and another dispatch mode was entered
            later.
    """
    if not _thread.parts:  # the block was entered before a fork
        return
    # An autograd thread loses its modes after each task.
    modes = _get_current_dispatch_mode_stack()
    if _thread.parts == 1 and _thread.mode in modes:
        if _thread.mode is not modes[-1]:
            raise RuntimeError(
                f"the sanitizer cannot be disabled within {type(modes[-1]).__name__}, "
                "a dispatch mode that was entered later: leave that first"
            )
        _thread.mode.__exit__(None, None, None)  # type: ignore[no-untyped-call]
    _thread.parts -= 1
    if not _thread.parts:
        _thread.mode = None


def _is_watch(mode: object) -> bool:
    return isinstance(mode, _Watch)


# ---- threads


def _watch_new_threads(watch: bool) -> None:
    """Makes ``threading`` call :func:`_join_at_start` first in each thread."""
    global _previous_profile
    if watch:
        previous = threading.getprofile()
        if previous is not _join_at_start:
            _previous_profile = previous
            threading.setprofile(_join_at_start)
    elif threading.getprofile() is _join_at_start:
        threading.setprofile(_previous_profile)


def _join_at_start(frame: FrameType, event: str, arg: Any) -> None:
    previous = _previous_profile
    sys.setprofile(previous)
    if _analysis is not None:
        join()
    if previous is not None:
        previous(frame, event, arg)


# ---- the GPU trace


def _listen() -> None:
    """Registers for the GPU trace, only once, because PyTorch cannot disable it."""
    global _listening
    with _lock:
        if _listening:
            return
        _gpu_trace.activate("the sanitizer")
        _add(_gpu_trace.EventCreationCallbacks, lambda a, e: a.order.create_event(e))
        _add(_gpu_trace.EventDeletionCallbacks, lambda a, e: a.delete_event(e))
        _add(_gpu_trace.EventRecordCallbacks, lambda a, *e: a.record_event(*e))
        _add(
            _gpu_trace.EventWaitCallbacks,
            lambda a, event, stream: a.wait_for_event(stream, event),
        )
        _add(
            _gpu_trace.EventSynchronizationCallbacks,
            lambda a, e: a.order.all_streams_wait_for_event(e),
        )
        _add(_gpu_trace.StreamCreationCallbacks, lambda a, s: a.order.create_stream(s))
        _add(
            _gpu_trace.StreamSynchronizationCallbacks,
            lambda a, s: a.order.all_streams_wait_for_stream(s),
        )
        _add(
            _gpu_trace.DeviceSynchronizationCallbacks,
            # The device is current in the callback.
            lambda a: a.synchronize_device(_C.current_device()),
        )
        _gpu_trace.MemoryAllocationCallbacks.add_callback(_on_allocation)
        _gpu_trace.MemoryDeallocationCallbacks.add_callback(_on_free)
        _C.set_graph_listener(_on_graph)
        if importlib.util.find_spec("openreg_inductor") is not None:
            from openreg_inductor._C import set_observer

            set_observer(_on_kernel)
        _listening = True
        atexit.register(_end_with_the_process)
        os.register_at_fork(after_in_child=_begin_again)


def _add(callbacks: Any, note: Callable[..., object]) -> None:
    def listen(*ids: int) -> None:
        analysis = _analysis
        if analysis is not None:
            with analysis.lock:
                analysis.end_lives()
                note(analysis, *ids)
                analysis.find_host_writes(_user_thread())

    callbacks.add_callback(listen)


def _on_allocation(address: int) -> None:
    analysis = _analysis
    if analysis is not None:
        analysis.note_allocation(address, user_place(_user_thread()))


def _on_free(address: int) -> None:
    analysis = _analysis
    if analysis is not None:
        analysis.note_free(address, user_place(_user_thread()))


def _on_graph(event: str, capture: int, stream: int) -> None:
    """Notes the events of a graph.

    Raises:
        UnsynchronizedAccessError: If a replay is not ordered after other uses of its
            memory.
    """
    analysis = _analysis
    if analysis is None:
        return
    if event == "reset":
        analysis.note_end_of_graph(capture)
    elif event == "replay":
        place = user_place(_user_thread())
        analysis.replay(capture, stream, _C.current_device(), place)
    elif event == "capture begun":
        analysis.begin_capture(capture)
    else:
        analysis.end_capture(capture, failed=event == "capture failed")


def _on_kernel(
    name: str, device: int, operands: list[tuple[torch.Tensor, bool]]
) -> None:
    """Notes a compiled kernel of a joined thread.

    Raises:
        UnsynchronizedAccessError: If it is not ordered after other uses of its memory.
    """
    analysis = _analysis
    # Within an operator the thread has no mode: the operator represents its kernels.
    if analysis is not None and any(map(_is_watch, _get_current_dispatch_mode_stack())):
        place = user_place(_user_thread())
        analysis.launch_kernel(f"compiled::{name}", device, operands, place)


def _user_thread() -> int:
    """Returns the thread for which this one works."""
    return _thread.user or threading.get_ident()


def _begin_again() -> None:
    """Restarts the analysis in a forked child, if the child can use devices.

    It cannot if the parent has used a device. The parent's lock may belong to another
    thread, and blocks of other threads do not count, because the child does not have
    these threads.
    """
    global _analysis, _enabled, _lock, _users
    _lock = threading.RLock()
    if _analysis is None:
        return
    if _C.is_in_bad_fork():
        _enabled = False
        _leave_all()
    _users = max(_thread.blocks, 0) + _enabled
    if _users:
        _analysis = _new_analysis()
    else:
        _end()


def _leave_all() -> None:
    """Undoes all joins of the calling thread."""
    modes = _get_current_dispatch_mode_stack()
    if modes and modes[-1] is _thread.mode:  # else it stays and does nothing
        _thread.mode.__exit__(None, None, None)  # type: ignore[no-untyped-call]
    _thread.mode, _thread.parts = None, 0
    _thread.blocks, _thread.enabled = 0, False
