# SPDX-License-Identifier: BSD-3-Clause
"""Feeds the analysis: with operators by dispatch modes, with the rest by the GPU trace.

A dispatch mode belongs to a thread, and autograd passes it on to its own threads.
Threads that Python starts get one when they start.
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
from torch_openreg.openreg import _gpu_trace

from ._analysis import Analysis

if TYPE_CHECKING:
    from types import FrameType

_PLAIN = frozenset({torch.Tensor, torch.nn.Parameter, torch.nn.Buffer})

_lock = threading.RLock()
_analysis: Analysis | None = None
_users = 0  # that share the analysis: enable(), and blocks in all threads
_enabled = False  # by enable()
_listening = False
_previous_profile: Any = None


class _Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Shows the analysis the operators of the thread that entered it."""

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
        # Switched off in another thread than this one, or no kernel runs.
        if analysis is None or FakeTensor in types:
            return func(*args, **kwargs)
        if not _PLAIN.issuperset(types):
            return NotImplemented  # the class calls other operators, on what it wraps
        result = decompose(self, func, args, kwargs)
        if result is not NotImplemented:
            return result
        _thread.user = self.thread
        call = analysis.begin(func, args, kwargs, user_place(self.thread))
        result = func(*args, **kwargs)
        analysis.end(call, func, result)
        return result


class _Thread(threading.local):
    """What holds for one thread.

    Attributes:
        mode: The mode that it entered itself. Autograd passes it on to other threads.
        parts: How often it joined and has not left.
        enabled: Whether one of the parts is that of :func:`enable`.
        blocks: How often it called :func:`start`, and has not called :func:`stop`.
        user: The thread for which it works, if it has run operators of the mode.
    """

    mode: _Watch | None = None
    parts = 0
    enabled = False
    blocks = 0
    user: int | None = None


_thread = _Thread()


# ---- on and off


def enable() -> None:
    """Begins an analysis for :func:`disable` to end, and makes the thread take part."""
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
    """Ends what :func:`enable` began."""
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
    """Begins an analysis, or shares the one there is, until :func:`stop`.

    Threads that Python starts meanwhile take part in it.

    Raises:
        RuntimeError: If ``OPENREG_DISABLE`` leaves out what it needs.
    """
    _begin()
    _thread.blocks += 1


def stop() -> None:
    """Ends the analysis, if nobody shares it any more."""
    _thread.blocks -= 1
    _drop()


def _begin() -> None:
    global _analysis, _users
    _listen()
    with _lock:
        _users += 1
        if _analysis is None:
            _analysis = Analysis()
            _watch_new_threads(True)


def _drop() -> None:
    global _users
    with _lock:
        if _users:  # a forked child may leave blocks that do not count in it
            _users -= 1
        if not _users:
            _end()


def report() -> None:
    """Raises the error of a write without an operator that was found, if there is one.

    If the analysis has no other user, it looks for one, for nothing may wait any more.

    Raises:
        UnsynchronizedAccessError: For the first such write.
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
    """Tells whether there is an analysis."""
    return _analysis is not None


def join() -> None:
    """Makes the calling thread take part until it has left as often as it joined."""
    if not any(map(_is_watch, _get_current_dispatch_mode_stack())):
        _thread.mode = _Watch()
        _thread.mode.__enter__()  # type: ignore[no-untyped-call]
    _thread.parts += 1


def leave() -> None:
    """Ends a part of the calling thread.

    Raises:
        RuntimeError: If it is the last, and another dispatch mode lies over it.
    """
    if not _thread.parts:  # of a block that was entered before a fork
        return
    # A thread of autograd loses its modes after each task.
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
    """Has ``threading`` call :func:`_join_at_start` first in each thread."""
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
    """Listens to the GPU trace, once: PyTorch does not switch it off again."""
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
    """Notes what happens to a graph.

    Raises:
        UnsynchronizedAccessError: If it is a replay that nothing orders after other
            uses of its memory.
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
    """Notes a compiled kernel of a thread that takes part.

    Raises:
        UnsynchronizedAccessError: If nothing orders it after other uses of its memory.
    """
    analysis = _analysis
    # Within an operator the thread has no mode: the operator stands for its kernels.
    if analysis is not None and any(map(_is_watch, _get_current_dispatch_mode_stack())):
        place = user_place(_user_thread())
        analysis.launch_kernel(f"compiled::{name}", device, operands, place)


def _user_thread() -> int:
    """Returns the thread for which this one works."""
    return _thread.user or threading.get_ident()


def _begin_again() -> None:
    """Begins a new analysis in a forked child, if the child can use devices.

    It cannot if the parent has used one. The parent's lock may be another thread's, and
    blocks of other threads do not count, since the child does not have these threads.
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
        _analysis = Analysis()
    else:
        _end()


def _leave_all() -> None:
    """Ends all parts of the calling thread."""
    modes = _get_current_dispatch_mode_stack()
    if modes and modes[-1] is _thread.mode:  # otherwise it stays, and does nothing
        _thread.mode.__exit__(None, None, None)  # type: ignore[no-untyped-call]
    _thread.mode, _thread.parts = None, 0
    _thread.blocks, _thread.enabled = 0, False
