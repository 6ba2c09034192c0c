# SPDX-License-Identifier: BSD-3-Clause
"""Matrices in tiles: a layout that only a backend's own class of tensors can have."""

from __future__ import annotations

import torch

from openreg_aten import _C

from ._utils import check_tensor


def to_tiled(matrix: torch.Tensor, tile: tuple[int, int] = (16, 16)) -> torch.Tensor:
    """Lays a matrix out in tiles, as matrix units read it.

    A tile is a contiguous part of the memory, tiles lie row by row, and the last ones
    are filled up with zeros. The result has the shape and the dtype of the matrix, but
    no strides and no storage: operators, copies and files refuse it and say so.
    ``detach()``, ``.data``, ``torch.nn.Parameter`` and modules keep it.

    Args:
        matrix: A tensor of the device with two dimensions, without ``requires_grad``.
        tile: Rows and columns of a tile.

    Returns:
        A tensor with a copy of the values.

    Raises:
        TypeError: If ``matrix`` is no tensor.
        ValueError: If it is not on the device.
        RuntimeError: If it is no matrix or has gradients, or a tile has no elements.
    """
    rows, columns = tile
    result: torch.Tensor = torch.ops.openreg.to_tiled(
        check_tensor(matrix), rows, columns
    )
    return result


def from_tiled(tensor: torch.Tensor) -> torch.Tensor:
    """Lays a matrix in tiles out by rows again.

    Args:
        tensor: What ``to_tiled`` returned, or what keeps its layout.

    Returns:
        A contiguous tensor with a copy of the values.

    Raises:
        TypeError: If ``tensor`` is no tensor.
        ValueError: If it is not on the device.
        RuntimeError: If it is not tiled.
    """
    result: torch.Tensor = torch.ops.openreg.from_tiled(check_tensor(tensor))
    return result


def tile_shape(tensor: torch.Tensor) -> tuple[int, int] | None:
    """Returns the shape of the tiles of a tensor.

    Args:
        tensor: A tensor of the device.

    Returns:
        Rows and columns of a tile, or None if the tensor has strides as most have.

    Raises:
        TypeError: If ``tensor`` is no tensor.
        ValueError: If it is not on the device.
    """
    shape = _C.tile_shape(check_tensor(tensor))
    return None if shape is None else (shape[0], shape[1])
