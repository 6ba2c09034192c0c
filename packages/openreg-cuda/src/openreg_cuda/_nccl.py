# SPDX-License-Identifier: BSD-3-Clause
"""``torch.cuda.nccl``: collectives among the devices of one process.

Each is a sequence of copies and operators. Streams and communicators are ignored: the
current streams order the work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, TypeAlias

import torch

_Tensors: TypeAlias = "Sequence[torch.Tensor]"

# In the order of the numbers in torch.cuda.nccl.
_OPERATIONS: tuple[Callable[[Any, Any], Any], ...] = (
    lambda x, y: x + y,
    lambda x, y: x * y,
    lambda x, y: torch.maximum(x, y),
    lambda x, y: torch.minimum(x, y),
)


def _reduced(inputs: _Tensors, operation: int, device: torch.device) -> torch.Tensor:
    if not 0 <= operation < len(_OPERATIONS):
        raise ValueError(
            f"op: expected a number from 0 to {len(_OPERATIONS) - 1}, got {operation}"
        )
    return reduce(_OPERATIONS[operation], [each.to(device) for each in inputs])


def _reduce(
    inputs: _Tensors, output: torch.Tensor, root: int, operation: int, *_: object
) -> None:
    output.copy_(_reduced(inputs, operation, inputs[root].device))


def _all_reduce(
    inputs: _Tensors, outputs: _Tensors, operation: int, *_: object
) -> None:
    result = _reduced(inputs, operation, inputs[0].device)
    for output in outputs:
        output.copy_(result)


def _broadcast(inputs: _Tensors, root: int, *_: object) -> None:
    for index, target in enumerate(inputs):
        if index != root:
            target.copy_(inputs[root])


def _all_gather(inputs: _Tensors, outputs: _Tensors, *_: object) -> None:
    for output in outputs:
        for part, source in zip(
            output.view(-1).chunk(len(inputs)), inputs, strict=True
        ):
            part.copy_(source.reshape(-1))


def _reduce_scatter(
    inputs: _Tensors, outputs: _Tensors, operation: int, *_: object
) -> None:
    result = _reduced(inputs, operation, inputs[0].device)
    for part, output in zip(result.view(-1).chunk(len(outputs)), outputs, strict=True):
        output.copy_(part.view_as(output))


NAMES: dict[str, object] = {
    "_nccl_reduce": _reduce,
    "_nccl_all_reduce": _all_reduce,
    "_nccl_broadcast": _broadcast,
    "_nccl_all_gather": _all_gather,
    "_nccl_reduce_scatter": _reduce_scatter,
    "_nccl_version": lambda: 2 << 32 | 27 << 16,  # invented
    "_nccl_version_suffix": lambda: b"",
}
