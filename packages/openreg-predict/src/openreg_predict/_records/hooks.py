# SPDX-License-Identifier: BSD-3-Clause
"""The sources of a recording besides operators: modules, streams, threads and so on.

Each function is a context that removes what it has added. The callbacks of the GPU
trace stay, because PyTorch cannot disable them; without a recording they do nothing.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn
from torch.optim import optimizer as nn_optimizer

from openreg_predict._records.record import (
    Capture,
    Enter,
    Fork,
    Join,
    Mark,
    Region,
    Replay,
    Sync,
    Wait,
)
from openreg_predict._records.recorder import Recorder, RecordingMode

_active: Recorder | None = None
_listening = False


@contextmanager
def all_hooks(recorder: Recorder) -> Iterator[None]:
    """Listens to everything while the block runs."""
    with ExitStack() as stack:
        for each in (_trace, _graphs, _modules, _optimizers, _storages, _threads):
            stack.enter_context(each(recorder))
        stack.enter_context(_regions(recorder))
        yield


# ---- streams and events


@contextmanager
def _trace(recorder: Recorder) -> Iterator[None]:
    global _active
    _listen()
    _marks.clear()
    _active = recorder
    try:
        yield
    finally:
        _active = None


_marks: dict[int, int] = {}


def _listen() -> None:
    global _listening
    if _listening:
        return
    from torch_openreg.openreg import _gpu_trace

    _gpu_trace.activate("openreg_predict.record()")
    for registry, note in (
        (_gpu_trace.EventRecordCallbacks, _on_record),
        (_gpu_trace.EventWaitCallbacks, _on_wait),
        (_gpu_trace.EventSynchronizationCallbacks, _on_event_sync),
        (_gpu_trace.StreamSynchronizationCallbacks, _on_stream_sync),
        (_gpu_trace.DeviceSynchronizationCallbacks, _on_device_sync),
    ):
        registry.add_callback(_while_active(note))
    _listening = True


def _while_active(note: Callable[..., None]) -> Callable[..., None]:
    def listen(*ids: int) -> None:
        if _active is not None:
            note(_active, *ids)

    return listen


def _current(recorder: Recorder, stream: int) -> tuple[int, int]:
    """Returns the device and the number of a stream of the GPU trace."""
    for (device, known), number in recorder.streams.items():
        if known == stream:
            return device, number
    device = torch.accelerator.current_device_index()
    if torch.accelerator.device_count() > 1:
        for index in range(torch.accelerator.device_count()):
            if torch._C._accelerator_getStream(index).stream_id == stream:
                device = index
    return device, recorder.stream(device, stream)


def _on_record(recorder: Recorder, event: int, stream: int) -> None:
    stream = _id_of(stream)
    with recorder.lock:
        mark = _marks[event] = _marks.get(-1, 0)
        _marks[-1] = mark + 1
        recorder.events.append(
            Mark(mark, recorder.thread(), *_current(recorder, stream))
        )


def _on_wait(recorder: Recorder, event: int, stream: int) -> None:
    if stream and event in _marks:  # 0 is the host, which only asks
        where = _current(recorder, _id_of(stream))
        recorder.events.append(Wait(_marks[event], recorder.thread(), *where))


def _on_event_sync(recorder: Recorder, event: int) -> None:
    if event in _marks:
        recorder.events.append(Sync(recorder.thread(), 0, -1, _marks[event]))


def _on_stream_sync(recorder: Recorder, stream: int) -> None:
    where = _current(recorder, _id_of(stream))
    recorder.events.append(Sync(recorder.thread(), *where))


def _on_device_sync(recorder: Recorder) -> None:
    device = torch.accelerator.current_device_index()
    recorder.events.append(Sync(recorder.thread(), device))


def _id_of(stream: int) -> int:
    """Returns the id that ``torch.Stream`` has: 0 for a default stream.

    The trace gives the address of the runtime's stream; only a default one differs.
    """
    if stream not in _ids:
        for index in range(torch.accelerator.device_count()):
            default = torch.get_device_module().default_stream(index)
            _ids[default.native_handle] = default.stream_id
    return _ids.setdefault(stream, stream)


_ids: dict[int, int] = {}


def active() -> Recorder | None:
    """Returns the recorder of the active recording."""
    return _active


# ---- graphs


@contextmanager
def _graphs(recorder: Recorder) -> Iterator[None]:
    from openreg_aten import _C

    def listen(event: str, capture: int, stream: int) -> None:
        thread = recorder.thread()
        if event == "replay":
            where = _current(recorder, _id_of(stream))
            recorder.events.append(Replay(capture, thread, *where))
        elif event != "reset":
            begins = event == "capture begun"
            recorder.events.append(Capture(capture, thread, begins))

    _C.set_graph_listener(listen)
    try:
        yield
    finally:
        sanitizer = sys.modules.get("torch_openreg.openreg.sanitizer._mode")
        listens = getattr(sanitizer, "_listening", False)
        _C.set_graph_listener(sanitizer._on_graph if listens else None)  # type: ignore[union-attr]


# ---- modules and optimizers


@contextmanager
def _modules(recorder: Recorder) -> Iterator[None]:
    """Notes the calls of modules.

    Global hooks of modules would do the same, but compiled modules warn about them.
    """
    local = recorder.local
    call_of = nn.Module.__call__
    names: weakref.WeakKeyDictionary[nn.Module, str] = weakref.WeakKeyDictionary()

    def enter(module: nn.Module) -> None:
        if not hasattr(local, "modules"):
            local.modules = []
        if module not in names:
            for name, each in module.named_modules():
                name = name.removeprefix("_orig_mod").removeprefix(".")
                names.setdefault(each, name or type(module).__name__)
                _note_tensors(recorder, each)
        number = recorder.module_number(names[module])
        if not local.modules and torch._C._current_autograd_node() is None:
            recorder.events.append(Enter(number, recorder.thread()))
        local.modules.append(number)

    def call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        enter(module)
        try:
            return call_of(module, *args, **kwargs)
        finally:
            local.modules.pop()

    nn.Module.__call__ = call  # type: ignore[method-assign]
    try:
        yield
    finally:
        nn.Module.__call__ = call_of  # type: ignore[method-assign]


def _note_tensors(recorder: Recorder, module: nn.Module) -> None:
    for parameter in module.parameters(recurse=False):
        recorder.own(parameter, "parameters")
        recorder.parameters[id(parameter)] = weakref.ref(parameter)
    for buffer in module.buffers(recurse=False):
        recorder.own(buffer, "buffers")


@contextmanager
def _optimizers(recorder: Recorder) -> Iterator[None]:
    def before(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        recorder.optimizing += 1
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                recorder.own(parameter, "parameters")
                if parameter.grad is not None:
                    recorder.own(parameter.grad, "gradients")

    def after(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        recorder.optimizing -= 1
        for state in optimizer.state.values():
            for value in state.values() if isinstance(state, dict) else ():
                recorder.own(value, "optimizer")

    handles = [
        nn_optimizer.register_optimizer_step_pre_hook(before),
        nn_optimizer.register_optimizer_step_post_hook(after),
    ]
    try:
        yield
    finally:
        for each in handles:
            each.remove()


@contextmanager
def _storages(recorder: Recorder) -> Iterator[None]:
    """Sees the storages that a program empties and fills, as FSDP does."""
    original = torch.UntypedStorage.resize_

    def resize(storage: torch.UntypedStorage, size: int) -> Any:
        result = original(storage, size)
        recorder.resized(storage)
        return result

    torch.UntypedStorage.resize_ = resize  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        torch.UntypedStorage.resize_ = original  # type: ignore[method-assign]


# ---- threads


@contextmanager
def _threads(recorder: Recorder) -> Iterator[None]:
    """Records in threads that the program starts in the block."""
    start, run, join = (
        threading.Thread.start,
        threading.Thread.run,
        threading.Thread.join,
    )
    numbers: weakref.WeakKeyDictionary[threading.Thread, int] = (
        weakref.WeakKeyDictionary()
    )

    def started(thread: threading.Thread) -> None:
        with recorder.lock:
            number = numbers[thread] = len(numbers) + 1
            recorder.events.append(Fork(recorder.thread(), number))
        start(thread)

    def ran(thread: threading.Thread) -> None:
        number = numbers.get(thread)
        if number is None or _active is not recorder:
            run(thread)
            return
        recorder.threads[threading.get_ident()] = number
        with RecordingMode(recorder):
            run(thread)

    def joined(thread: threading.Thread, timeout: float | None = None) -> None:
        join(thread, timeout)
        if thread in numbers and not thread.is_alive():
            recorder.events.append(Join(recorder.thread(), numbers[thread]))

    patched: dict[str, Callable[..., None]] = {
        "start": started,
        "run": ran,
        "join": joined,
    }
    for name, each in patched.items():
        setattr(threading.Thread, name, each)
    try:
        yield
    finally:
        for name, each in (("start", start), ("run", run), ("join", join)):
            setattr(threading.Thread, name, each)


# ---- compiled functions


@contextmanager
def _regions(recorder: Recorder) -> Iterator[None]:
    """Runs compiled functions as they are written, and notes their calls.

    The code that Inductor makes for this machine is not the code of the described
    device, so the clock forms the kernels of a region from its operators.
    """
    from torch._dynamo import eval_frame

    frames: Any = eval_frame

    local = recorder.local
    callback_of, set_frame = frames._callback_from_stance, frames.set_eval_frame

    def begin(callback: Any) -> Any:
        if callback is None or callback is False:
            return callback_of(callback)
        caller = sys._getframe(1)
        if not hasattr(local, "regions"):
            local.regions = []
        if local.regions:
            number = local.regions[-1][0]  # a compiled function inside of another one
        else:
            graphs = _replays_graphs(caller.f_locals.get("self"))
            with recorder.lock:
                number = recorder.region_count
                recorder.region_count += 2
                recorder.events.append(Region(number, recorder.thread(), graphs))
        local.regions.append((number, caller))
        return None

    def set_eval_frame(callback: Any) -> Any:
        regions = getattr(local, "regions", None)
        if regions and regions[-1][1] is sys._getframe(1):
            number = regions.pop()[0]
            if not regions:
                recorder.events.append(Region(number, recorder.thread(), ends=True))
        return set_frame(callback)

    patched: dict[str, Any] = {
        "_callback_from_stance": begin,
        "set_eval_frame": set_eval_frame,
        # With fullgraph=True, PyTorch else refuses calls that compile nothing.
        "set_fullgraph_compiled_frame_count": lambda _: 0,
    }
    before = {name: getattr(frames, name) for name in patched if hasattr(frames, name)}
    for name in before:
        setattr(frames, name, patched[name])
    try:
        yield
    finally:
        for name, each in before.items():
            setattr(frames, name, each)


def _replays_graphs(context: Any) -> bool:
    """Returns whether a compiled function uses CUDA graphs."""
    settings = getattr(context, "compiler_config", None) or {}
    return bool(settings.get("triton.cudagraphs"))
