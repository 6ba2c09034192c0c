# SPDX-License-Identifier: BSD-3-Clause
"""Records the operators of a run, and the life of their storages.

A dispatch mode sees each operator below autograd, in the thread that entered it, in
autograd's threads and in threads that the program starts. Without a recording nothing
is registered.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import torch
from torch import nn
from torch.autograd.graph import Node
from torch.utils._python_dispatch import TorchDispatchMode

from openreg_predict._records.record import (
    Alloc,
    Event,
    Free,
    HostOps,
    Meet,
    Op,
    RecordedRun,
)
from openreg_predict._works import collectives
from openreg_predict._works.work import Call, TensorFacts, short_dtype

_PLAIN = frozenset({"FakeTensor", "Parameter", "Buffer", "Tensor"})
_FAKE = torch._C._TorchDispatchModeKey.FAKE
_DEVICE_OF = torch.ops.prim.device.default
_FLEX_ATTENTION = "flex_attention"
_HIDDEN = "openreg_predict: hidden"  # in the metadata of autograd nodes
_COPIES = (
    "aten::_to_copy",
    "aten::copy_",
    "aten::_copy_from",
    "aten::_copy_from_and_resize",
)
_Operator = torch._ops.OpOverload
_Dry = Callable[[_Operator, tuple[Any, ...], dict[str, Any]], Any]


def _run(func: _Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return func(*args, **kwargs)


class RecordingMode(TorchDispatchMode):
    """Passes the operators of one thread to a recorder."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.recorder = recorder
        self.supports_higher_order_operators = True

    def __torch_dispatch__(
        self,
        func: _Operator,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        recorder = self.recorder
        if torch._C._get_dispatch_mode(_FAKE) is not None:
            return func(*args, **kwargs)  # of another program, which computes a shape
        if recorder.is_hidden():
            return func(*args, **kwargs)
        if isinstance(func, torch._ops.HigherOrderOperator):
            return self._higher_order(func, args, kwargs)
        if func is _DEVICE_OF:
            return recorder.run(func, args, kwargs)
        if any(each.__name__ not in _PLAIN for each in types):
            return NotImplemented  # a distributed tensor, for example: its parts follow
        result = recorder.decompose(self, func, args, kwargs)
        if result is not NotImplemented:
            return result
        wait = recorder.cause_of_wait(func, args, kwargs) or ""
        result = recorder.run(func, args, kwargs)
        recorder.note(func, args, kwargs, result, wait)
        return result

    def _higher_order(
        self,
        func: torch._ops.HigherOrderOperator,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Runs an operator that calls functions; FlexAttention is one kernel on CUDA.

        PyTorch's implementations refuse modes, so the calls of others are not seen.
        """
        result = func(*args, **kwargs)
        name = func._name
        if name.startswith(_FLEX_ATTENTION):
            self.recorder.note_attention(name, args, result)
            return result
        problem = f"the calls within {name} are not recorded"
        if problem not in self.recorder.record.problems:
            self.recorder.record.problems.append(problem)
        return result


class Recorder:
    """Collects the events of a run in a record."""

    def __init__(self, record: RecordedRun, run: _Dry | None = None) -> None:
        from torch_openreg._composite import decompose
        from torch_openreg.openreg._utils import device_type
        from torch_openreg.testing._cuda_waits import cause_of_cuda_wait

        self.record = record
        self.events: list[Event] = record.events
        self.run = run or _run
        self.decompose = decompose
        self.cause_of_wait = cause_of_cuda_wait
        self.device_type = device_type()
        self.lock = threading.RLock()
        self.optimizing = 0
        self.modules: dict[str, int] = {"": 0}
        self.local = threading.local()
        self.storages: dict[int, tuple[int, Any, int]] = {}
        self.storage_count = 0
        self.threads: dict[int, int] = {threading.get_ident(): 0}
        self.streams: dict[tuple[int, int], int] = {}
        self.nodes: dict[int, tuple[int, int]] = {}  # of autograd: module and region
        self.parameters: dict[int, weakref.ref[nn.Parameter]] = {}
        self.region_count = 0
        self.hides_nodes = False

    def end(self) -> None:
        """Ends the record. Later events, such as frees, change it no more."""
        self.record = RecordedRun()
        self.events = self.record.events

    # ---- where the program is

    def thread(self) -> int:
        """Returns the number of this thread; autograd's threads work for thread 0."""
        return self.threads.get(threading.get_ident(), 0)

    def stream(self, device: int, stream: int | None = None) -> int:
        """Returns the number of a stream, the current one of the device by default."""
        if stream is None:
            stream = torch._C._accelerator_getStream(device).stream_id
        streams = self.streams
        key = (device, stream)
        if key not in streams:
            streams[key] = sum(each[0] == device for each in streams)
        return streams[key]

    def module_number(self, name: str) -> int:
        """Returns the index of a module's name."""
        if name not in self.modules:
            self.modules[name] = len(self.modules)
            self.record.modules.append(name)
        return self.modules[name]

    def place(self) -> tuple[int, int, str]:
        """Returns the module, the compiled region and the phase of an operator."""
        local = self.local
        module = local.modules[-1] if getattr(local, "modules", None) else 0
        region = local.regions[-1][0] if getattr(local, "regions", None) else -1
        if self.optimizing:
            return module, region, "optimizer"
        node = torch._C._current_autograd_node()
        if node is None:
            if torch.is_grad_enabled():
                number = torch._C._autograd._get_sequence_nr() - 1
                self.nodes.setdefault(number, (module, region))
            return module, region, "forward"
        if region < 0:  # a checkpoint may compute a forward pass again in the node
            of_node = self.nodes.get(node._sequence_nr(), (0, -1))
            module, region = module or of_node[0], of_node[1]
            region = region + 1 if region >= 0 else -1
        return module, region, "backward"

    def note_next_node(self) -> None:
        """Notes where the program is for the autograd node that it makes next.

        Each thread counts its nodes, so a checkpoint that computes again in one of
        autograd's threads notes nothing.
        """
        if torch._C._current_autograd_node() is not None:
            return
        module, region, _ = self.place()
        number = torch._C._autograd._get_sequence_nr()
        self.nodes.setdefault(number, (module, region))

    # ---- operators that are not recorded

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Does not record the operators of this thread in the block."""
        self.local.hidden = getattr(self.local, "hidden", 0) + 1
        try:
            yield
        finally:
            self.local.hidden -= 1

    def hide_nodes(self, last: Node | None, first: Node | None) -> None:
        """Does not record the operators of autograd nodes before ``first``.

        Args:
            last: The node that runs first in the backward pass.
            first: The node behind the hidden ones.
        """
        self.hides_nodes = True
        left = [last]
        while left:
            node = left.pop()
            if node is None or node is first or _HIDDEN in _metadata(node):
                continue
            _metadata(node)[_HIDDEN] = True
            left.extend(each for each, _ in node.next_functions)

    def is_hidden(self) -> bool:
        """Returns whether the operator that runs now is not to be recorded."""
        if getattr(self.local, "hidden", 0):
            return True
        node = torch._C._current_autograd_node() if self.hides_nodes else None
        return node is not None and _HIDDEN in _metadata(node)

    # ---- storages

    def storage(self, tensor: torch.Tensor, made: tuple[int, int, str] | None) -> int:
        """Returns the number of a tensor's storage.

        Args:
            tensor: The tensor.
            made: Device, stream and phase, if an operator has just returned it.
        """
        storage = tensor.untyped_storage()
        key = storage._cdata
        found = self.storages.get(key)
        if found is not None:
            return found[0]
        with self.lock:
            self.storage_count += 1
            number = self.storage_count
            freed = partial(self._freed, key, number)
            size = storage.nbytes()
            self.storages[key] = (number, weakref.ref(storage, freed), size)
            if tensor.device.type == self.device_type:
                if made is not None:
                    self.events.append(Alloc(number, size, *made))
                else:
                    index = tensor.device.index or 0
                    self.record.initial.append(Alloc(number, size, index))
        return number

    def _freed(self, key: int, number: int, _: object) -> None:
        self.storages.pop(key, None)
        backward = torch._C._current_autograd_node() is not None
        self.events.append(Free(number, backward))

    def resized(self, storage: torch.UntypedStorage) -> None:
        """Notes the new size of a storage, if it is one of the record."""
        found = self.storages.get(storage._cdata)
        if found is None or found[2] == storage.nbytes():
            return
        number, reference, old = found
        size = storage.nbytes()
        self.storages[storage._cdata] = (number, reference, size)
        if old:
            self.events.append(Free(number))
        if size:
            device = 0
            phase = self.place()[2]
            self.events.append(Alloc(number, size, device, self.stream(device), phase))

    def own(self, value: object, owner: str) -> None:
        """Notes what a tensor holds, unless that is known."""
        tensor = getattr(value, "_local_tensor", value)  # of a distributed tensor
        if isinstance(tensor, torch.Tensor) and tensor.device.type == self.device_type:
            number = self.storage(tensor, None)
            self.record.owners.setdefault(number, owner)

    def note_gradients(self) -> None:
        """Notes the gradients of the parameters that modules have used."""
        for reference in list(self.parameters.values()):
            parameter = reference()
            if parameter is not None and parameter.grad is not None:
                self.own(parameter.grad, "gradients")

    # ---- operators

    def note(
        self,
        func: _Operator,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        result: Any,
        wait: str,
    ) -> None:
        """Adds an operator to the record."""
        device = _device_of((args, kwargs, result), self.device_type)
        collective = collectives.describe(func, args, kwargs)
        if device is None:
            self._note_host()
            if collective is not None and collective.group and not collective.is_async:
                self.events.append(Meet(self.thread(), collective.group))
            return
        module, region, phase = self.place()
        stream = self.stream(device)
        facts = self._facts(None)
        arguments = {
            name: _described(value, facts) for name, value in _named(func, args, kwargs)
        }
        with self.lock:
            results: list[TensorFacts] = []
            _collect(result, self._facts((device, stream, phase)), results)
            name, overload_of = _names(func)
            call = Call(
                collective.name if collective else name,
                arguments,
                results,
                _is_view(func),
                _tags(func),
                overload_of,
            )
            op = Op(call, self.thread(), device, stream, wait, module, phase, region)
            if collective is not None:
                op.ranks, op.is_async = collective.ranks, collective.is_async
                op.group = collective.group
            elif func._schema.name in _COPIES:
                op.transfer, op.pinned = _transfer(args, kwargs, result)
            self.events.append(op)

    def note_attention(self, name: str, args: tuple[Any, ...], result: Any) -> None:
        """Adds a call of FlexAttention, or of its backward pass."""
        device = _device_of(args[:3], self.device_type)
        if device is None:
            self._note_host()
            return
        module, region, phase = self.place()
        stream = self.stream(device)
        known = self._facts(None)
        names = ("query", "key", "value")
        arguments = {n: known(x) for n, x in zip(names, args, strict=False)}
        arguments["others"] = _described(args[3:], known)
        with self.lock:
            results: list[TensorFacts] = []
            _collect(result, self._facts((device, stream, phase)), results)
            call = Call(name, arguments, results, False, frozenset(), "higher_order")
            op = Op(call, self.thread(), device, stream, "", module, phase, region)
            self.events.append(op)

    def _note_host(self) -> None:
        thread = self.thread()
        last = self.events[-1] if self.events else None
        if isinstance(last, HostOps) and last.thread == thread:
            last.count += 1
        else:
            self.events.append(HostOps(thread))

    def _facts(
        self, made: tuple[int, int, str] | None
    ) -> Callable[[torch.Tensor], TensorFacts | None]:
        def facts(tensor: torch.Tensor) -> TensorFacts | None:
            if tensor.layout is not torch.strided:
                return None
            return TensorFacts(
                tuple(map(int, tensor.shape)),
                tuple(map(int, tensor.stride())),
                short_dtype(tensor.dtype),
                self.storage(tensor, made),
                tensor.device.type,
            )

        return facts


# ---- operators and their arguments


def _metadata(node: Node) -> dict[Any, Any]:
    found: Any = node.metadata  # PyTorch's stubs declare a method
    return found  # type: ignore[no-any-return]


@cache
def _names(func: _Operator) -> tuple[str, str]:
    namespace, _, name = func._schema.name.partition("::")
    return name, namespace


@cache
def _tags(func: _Operator) -> frozenset[str]:
    return frozenset(str(tag).rpartition(".")[2] for tag in func.tags)


@cache
def _is_view(func: _Operator) -> bool:
    """Returns whether the results only alias an argument, as its schema declares."""
    returned = [each.alias_info for each in func._schema.returns]
    return bool(returned) and all(
        info is not None and not info.is_write for info in returned
    )


@cache
def _argument_names(func: _Operator) -> list[str]:
    return [each.name for each in func._schema.arguments]


def _named(
    func: _Operator, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[tuple[str, Any]]:
    return [*zip(_argument_names(func), args, strict=False), *kwargs.items()]


def _described(value: Any, facts: Callable[[torch.Tensor], TensorFacts | None]) -> Any:
    """Returns an argument without its tensors and objects."""
    if isinstance(value, torch.Tensor):
        return facts(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [_described(each, facts) for each in value]
    if isinstance(value, (torch.SymInt, torch.SymFloat)):
        return int(value)
    return str(value) if isinstance(value, (torch.dtype, torch.device)) else None


def _collect(
    value: Any,
    facts: Callable[[torch.Tensor], TensorFacts | None],
    found: list[TensorFacts],
) -> None:
    if isinstance(value, torch.Tensor):
        each = facts(value)
        if each is not None:
            found.append(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            _collect(each, facts, found)


def _device_of(value: Any, device_type: str) -> int | None:
    """Returns the index of the first device tensor, or None."""
    if isinstance(value, torch.Tensor):
        device = value.device
        return (device.index or 0) if device.type == device_type else None
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return None
    for each in value:
        found = _device_of(each, device_type)
        if found is not None:
            return found
    return None


def _transfer(
    args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
) -> tuple[str, bool]:
    """Returns the direction of a copy between devices, and whether it is pinned."""
    tensors = [x for x in (*args[:2], result) if isinstance(x, torch.Tensor)]
    on_host = [x for x in tensors if x.device.type == "cpu"]
    devices = {x.device for x in tensors}
    if not on_host:
        return ("DtoD", False) if len(devices) > 1 else ("", False)
    source = args[0] if isinstance(result, torch.Tensor) and len(args) < 2 else args[1]
    if not isinstance(source, torch.Tensor):
        source = args[0]
    direction = "HtoD" if source.device.type == "cpu" else "DtoH"
    pinned = any(type(x) is not torch.Tensor or x.is_pinned() for x in on_host)
    non_blocking = kwargs.get("non_blocking", args[2:3] == (True,))
    return direction, bool(non_blocking) and pinned
