# SPDX-License-Identifier: BSD-3-Clause
"""``torch.cuda.comm``: copies between the devices of one process."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from openreg_cuda._backend import CUDA

if TYPE_CHECKING:
    import torch

_CPU = -1  # the index that stands for the CPU


def _device(index: int) -> str:
    return "cpu" if index == _CPU else f"cuda:{index}"


def _check_on_cuda(tensors: Sequence[torch.Tensor], kind: str) -> None:
    for index, tensor in enumerate(tensors):
        if not tensor.is_cuda:
            raise RuntimeError(
                f"Expected all {kind} tensors to be CUDA tensors, but {kind} tensor "
                f"at index {index} has device '{tensor.device}'"
            )


def _broadcast(tensor: torch.Tensor, devices: list[int]) -> list[torch.Tensor]:
    if not devices:
        raise RuntimeError("devices: expected at least one device to broadcast to")
    return [tensor.to(_device(index), non_blocking=True) for index in devices]


def _broadcast_out(
    tensor: torch.Tensor, out: Sequence[torch.Tensor]
) -> Sequence[torch.Tensor]:
    _check_on_cuda(out, "output")
    for index, target in enumerate(out):
        if target.shape != tensor.shape:
            raise RuntimeError(
                "Expected all output tensors to have same shape as the source tensor "
                f"{list(tensor.shape)}, but output tensor at index {index} has shape "
                f"{list(target.shape)}"
            )
        target.copy_(tensor, non_blocking=True)
    return out


def _broadcast_coalesced(
    tensors: Sequence[torch.Tensor], devices: list[int], buffer_size: int
) -> list[list[torch.Tensor]]:
    del buffer_size  # a copy of one tensor costs little here
    for index, tensor in enumerate(tensors):
        if tensor.device.index != devices[0] or not tensor.is_cuda:
            raise RuntimeError(
                f"All tensors must be on devices[0]: {devices[0]}, but tensor "
                f"{index} is on {tensor.device}"
            )
    return [[tensor.to(_device(i)) for tensor in tensors] for i in devices]


def _scatter(
    tensor: torch.Tensor,
    devices: list[int],
    chunk_sizes: list[int] | None,
    dim: int,
    streams: Sequence[torch.Stream | None] | None,
) -> list[torch.Tensor]:
    if not devices:
        raise RuntimeError("Expected at least one device to scatter to")
    if chunk_sizes is None:
        chunks = list(tensor.chunk(len(devices), dim))
    else:
        if len(chunk_sizes) != len(devices):
            raise RuntimeError(
                "Expected devices and chunk_sizes to be of same length, but got "
                f"{len(devices)} and {len(chunk_sizes)}"
            )
        chunks = list(tensor.split_with_sizes(chunk_sizes, dim))
    _check_streams(streams, devices)
    results = []
    for place, chunk in enumerate(chunks):
        with _on(streams, place):
            results.append(chunk.to(_device(devices[place]), non_blocking=True))
    return results


def _scatter_out(
    tensor: torch.Tensor,
    out: Sequence[torch.Tensor],
    dim: int,
    streams: Sequence[torch.Stream | None] | None,
) -> Sequence[torch.Tensor]:
    if not out:
        raise RuntimeError("Expected at least one output tensor to scatter to")
    _check_on_cuda(out, "output")
    dim = dim % tensor.dim()
    for index, target in enumerate(out):
        shape = [*tensor.shape[:dim], target.shape[dim], *tensor.shape[dim + 1 :]]
        if target.dim() != tensor.dim() or list(target.shape) != shape:
            raise RuntimeError(
                f"Output tensor at index {index} has incorrect shape: expected "
                f"{shape} but got {list(target.shape)}"
            )
    sizes = [target.shape[dim] for target in out]
    if sum(sizes) != tensor.shape[dim]:
        raise RuntimeError(
            f"Total size for output tensors along scatter dim {dim} does not match: "
            f"expected {tensor.shape[dim]}, but got {sum(sizes)}"
        )
    _check_streams(streams, out)
    for place, (target, chunk) in enumerate(
        zip(out, tensor.split_with_sizes(sizes, dim), strict=True)
    ):
        with _on(streams, place):
            target.copy_(chunk, non_blocking=True)
    return out


def _gathered_shape(tensors: Sequence[torch.Tensor], dim: int) -> list[int]:
    if not tensors:
        raise RuntimeError("Expected at least one tensor to gather from")
    _check_on_cuda(tensors, "input")
    first = tensors[0]
    dim = dim % first.dim()
    for index, tensor in enumerate(tensors):
        if tensor.dim() != first.dim():
            raise RuntimeError(
                "Expected all input tensors to have the same number of dimensions, "
                f"but input tensor at index {index} has {tensor.dim()} dimensions "
                f"(expected {first.dim()})"
            )
        expected = [*first.shape[:dim], tensor.shape[dim], *first.shape[dim + 1 :]]
        if list(tensor.shape) != expected:
            raise RuntimeError(
                f"Input tensor at index {index} has invalid shape "
                f"{list(tensor.shape)}, but expected {expected}"
            )
    total = sum(tensor.shape[dim] for tensor in tensors)
    return [*first.shape[:dim], total, *first.shape[dim + 1 :]]


def _gather(
    tensors: Sequence[torch.Tensor], dim: int, destination: int | None
) -> torch.Tensor:
    shape = _gathered_shape(tensors, dim)
    device = "cuda" if destination is None else _device(destination)
    out = tensors[0].new_empty(shape, device=device)
    if all(_is_channels_last(tensor) for tensor in tensors):
        import torch

        out = out.to(memory_format=torch.channels_last)
    return _gather_out(tensors, out, dim)


def _is_channels_last(tensor: torch.Tensor) -> bool:
    import torch

    is_one = tensor.is_contiguous(memory_format=torch.channels_last)
    return tensor.dim() == 4 and is_one and not tensor.is_contiguous()


def _gather_out(
    tensors: Sequence[torch.Tensor], out: torch.Tensor, dim: int
) -> torch.Tensor:
    shape = _gathered_shape(tensors, dim)
    if list(out.shape) != shape:
        raise RuntimeError(
            f"Expected out tensor to have shape {shape}, but got {list(out.shape)}"
        )
    dim = dim % out.dim()
    sizes = [tensor.shape[dim] for tensor in tensors]
    for tensor, size, end in zip(tensors, sizes, accumulate(sizes), strict=True):
        out.narrow(dim, end - size, size).copy_(tensor, non_blocking=out.is_cuda)
    return out


def _check_streams(
    streams: Sequence[torch.Stream | None] | None, targets: Sequence[object]
) -> None:
    if streams is None:
        return
    if len(streams) != len(targets):
        raise RuntimeError(
            f"streams: expected one for each of {len(targets)} targets, got "
            f"{len(streams)}"
        )
    for index, stream in enumerate(streams):
        if stream is not None and stream.device_type != CUDA:
            raise RuntimeError(
                f"Expected all streams to be CUDA streams, but stream at index {index} "
                f"is on {stream.device}"
            )


def _on(
    streams: Sequence[torch.Stream | None] | None, place: int
) -> torch.cuda.StreamContext:
    import torch

    return torch.cuda.stream(None if streams is None else streams[place])  # type: ignore[arg-type]


NAMES: dict[str, object] = {
    "_broadcast": _broadcast,
    "_broadcast_out": _broadcast_out,
    "_broadcast_coalesced": _broadcast_coalesced,
    "_scatter": _scatter,
    "_scatter_out": _scatter_out,
    "_gather": _gather,
    "_gather_out": _gather_out,
}
