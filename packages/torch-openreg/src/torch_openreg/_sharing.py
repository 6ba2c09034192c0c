# SPDX-License-Identifier: BSD-3-Clause
"""Sends device tensors to other processes through ``torch.multiprocessing``.

The processes share the memory, as on CUDA. Each transfer includes one end of a pipe,
which the receiver's storage closes when it is destroyed, or the system when the process
ends. The sender keeps the memory until then.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable
from multiprocessing import context, reduction
from typing import Any, NamedTuple

import torch
from torch.multiprocessing import reductions

from openreg_aten import _C
from torch_openreg.openreg._utils import device_type, valid_device_index


class _Sent(NamedTuple):
    """Memory that another process may use."""

    storage: torch.UntypedStorage
    reader: int  # at end of file once the other end is closed
    writer: int | None  # open until the process that inherits it has started
    process: Any


_sent: dict[int, _Sent] = {}
_lock = threading.RLock()
_count = 0


def register() -> None:
    """Replaces the pickling of tensors, parameters and storages for multiprocessing."""
    tensors: list[Any] = [torch.Tensor, torch.nn.Parameter, *torch._tensor_classes]
    for cls in tensors:
        reduction.register(cls, _reduce_tensor)
    reduction.register(torch.UntypedStorage, _reduce_storage)
    os.register_at_fork(after_in_child=_forget)


def collect() -> None:
    """Frees memory that other processes no longer use."""
    with _lock:
        poll = select.poll()
        readers = {}
        for key, sent in _sent.items():
            # Once that process has started, it has its own copy of the end.
            if sent.writer is not None and hasattr(sent.process, "sentinel"):
                os.close(sent.writer)
                _sent[key] = sent = sent._replace(writer=None, process=None)
            poll.register(sent.reader, select.POLLHUP)
            readers[sent.reader] = key
        for reader, _ in poll.poll(0):
            os.close(reader)
            del _sent[readers[reader]]


def _forget() -> None:
    """Drops the parent's transfers in a forked child."""
    global _lock
    _lock = threading.RLock()
    for sent in _sent.values():
        os.close(sent.reader)
        if sent.writer is not None:
            os.close(sent.writer)
    _sent.clear()


def _reduce_storage(storage: torch.UntypedStorage) -> Any:
    if storage.device.type == device_type():
        raise RuntimeError(
            f"Cannot pickle {device_type()} storage; try pickling a tensor instead"
        )
    return reductions.reduce_storage(storage)  # type: ignore[no-untyped-call]


def _reduce_tensor(tensor: torch.Tensor) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    if tensor.device.type != device_type():
        other: tuple[Any, Any] = reductions.reduce_tensor(tensor)  # type: ignore[no-untyped-call]
        return other
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "a non-leaf tensor that requires gradients cannot be sent to "
            "another process, as autograd does not cross processes: send "
            "tensor.detach()"
        )
    if tensor.is_nested or tensor.layout != torch.strided:
        return _reduce_composed(tensor.detach(), tensor.requires_grad)
    storage = tensor.untyped_storage()
    return _rebuild_tensor, (
        type(tensor),
        tensor.device.index,
        _send(storage) if storage.nbytes() else None,
        tensor.dtype,
        tensor.storage_offset(),
        tuple(tensor.size()),
        tensor.stride(),
        tensor.requires_grad,
    )


def _reduce_composed(
    tensor: torch.Tensor, requires_grad: bool
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Reduces a sparse or nested tensor to its component tensors."""
    layout = tensor.layout
    if tensor.is_nested and layout == torch.strided:
        return _rebuild_nested, (
            tensor.values(),
            tensor._nested_tensor_size(),
            tensor._nested_tensor_strides(),
            tensor._nested_tensor_storage_offsets(),
            requires_grad,
        )
    if layout == torch.sparse_coo:
        indices, values = tensor._indices(), tensor._values()
        coalesced = tensor.is_coalesced()
        return _rebuild_coo, (indices, values, tensor.shape, coalesced, requires_grad)
    if layout in (torch.sparse_csr, torch.sparse_bsr):
        parts = tensor.crow_indices(), tensor.col_indices(), tensor.values()
    else:
        parts = tensor.ccol_indices(), tensor.row_indices(), tensor.values()
    return _rebuild_compressed, (*parts, tensor.shape, layout, requires_grad)


def _rebuild_nested(*parts: Any) -> torch.Tensor:
    *buffer_and_shapes, requires_grad = parts
    tensor: torch.Tensor = torch._nested_view_from_buffer(*buffer_and_shapes)
    return tensor.requires_grad_(requires_grad)


def _rebuild_coo(
    indices: torch.Tensor,
    values: torch.Tensor,
    shape: torch.Size,
    coalesced: bool,
    requires_grad: bool,
) -> torch.Tensor:
    return torch.sparse_coo_tensor(
        indices,
        values,
        shape,
        is_coalesced=coalesced,
        check_invariants=False,
        requires_grad=requires_grad,
    )


def _rebuild_compressed(
    compressed: torch.Tensor,
    plain: torch.Tensor,
    values: torch.Tensor,
    shape: torch.Size,
    layout: torch.layout,
    requires_grad: bool,
) -> torch.Tensor:
    return torch.sparse_compressed_tensor(
        compressed,
        plain,
        values,
        shape,
        layout=layout,
        check_invariants=False,
        requires_grad=requires_grad,
    )


def _feeds_a_queue() -> bool:
    return threading.current_thread().name == "QueueFeederThread"


def _send(storage: torch.UntypedStorage) -> tuple[Any, ...]:
    """Returns the data for the other process and keeps the memory alive."""
    global _count
    collect()
    process = context.get_spawning_popen()
    try:
        # The other process cannot wait for a stream. Failures are not cleared.
        _C.wait_for_all_streams(storage.device.index)
        handle, offset = _C.ipc_handle(storage)
    except torch.AcceleratorError as error:
        # A queue pickles in a thread, where errors are lost, so the error is sent to
        # the reader.
        is_refused = "orErrorNotSupported" in str(error)
        if process is None and (is_refused or _feeds_a_queue()):
            return (str(error),)
        raise
    reader, writer = os.pipe()
    guard = reduction.DupFd(writer)
    if process is None:
        os.close(writer)  # DupFd has copied it
    with _lock:
        _count += 1
        kept = None if process is None else writer
        _sent[_count] = _Sent(storage, reader, kept, process)
        return os.getpid(), _count, handle, offset, storage.nbytes(), guard


def _receive(device: int, message: tuple[Any, ...]) -> torch.UntypedStorage:
    if len(message) == 1:
        raise RuntimeError(f"the sender of a tensor could not share it: {message[0]}")
    sender, key, handle, offset, size, guard = message
    descriptor: int = guard.detach()
    if sender == os.getpid():
        with _lock:
            storage = _sent[key].storage
        os.close(descriptor)
        return storage
    try:
        index = valid_device_index(device)
    except RuntimeError:
        os.close(descriptor)
        raise
    return _C.open_ipc(handle, index, offset, size, descriptor)


def _rebuild_tensor(
    cls: type[torch.Tensor],
    device: int,
    message: tuple[Any, ...] | None,
    dtype: torch.dtype,
    offset: int,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    requires_grad: bool,
) -> torch.Tensor:
    storage = None if message is None else _receive(device, message)
    place = torch.device(device_type(), valid_device_index(device))
    tensor = torch.empty(0, dtype=dtype, device=place)
    if storage is None:
        tensor = tensor.as_strided(size, stride)
    else:
        tensor.set_(storage, offset, size, stride)
    if issubclass(cls, torch.nn.Parameter):
        return torch.nn.Parameter(tensor, requires_grad)
    return tensor.requires_grad_(requires_grad)
