# SPDX-License-Identifier: BSD-3-Clause
"""Tiled matrices: a layout that needs a backend's own tensor class."""

from __future__ import annotations

import torch

from openreg_aten import _C

from ._utils import check_tensor


def to_tiled(matrix: torch.Tensor, tile: tuple[int, int] = (16, 16)) -> torch.Tensor:
    """Converts a matrix to a tiled layout, as matrix units read it.

    A tile is a contiguous part of the memory. Tiles are stored row by row, and the last
    ones are padded with zeros. The result has the shape and the dtype of the matrix,
    but neither strides nor a storage: operators, copies and files raise an error.
    ``detach()``, ``.data``, ``torch.nn.Parameter`` and modules keep it.

    Args:
        matrix: A device tensor with two dimensions, without ``requires_grad``.
        tile: Rows and columns of a tile.

    Returns:
        A tensor with a copy of the values.

    Raises:
        TypeError: If ``matrix`` is not a tensor.
        ValueError: If it is not on the device.
        RuntimeError: If it is not a matrix or has gradients, or a tile has no elements.
    """
    rows, columns = tile
    result: torch.Tensor = torch.ops.openreg.to_tiled(
        check_tensor(matrix), rows, columns
    )
    return result


def from_tiled(tensor: torch.Tensor) -> torch.Tensor:
    """Converts a tiled matrix back to rows.

    Args:
        tensor: The result of ``to_tiled``, or a tensor with the same layout.

    Returns:
        A contiguous tensor with a copy of the values.

    Raises:
        TypeError: If ``tensor`` is not a tensor.
        ValueError: If it is not on the device.
        RuntimeError: If it is not tiled.
    """
    result: torch.Tensor = torch.ops.openreg.from_tiled(check_tensor(tensor))
    return result


def tile_shape(tensor: torch.Tensor) -> tuple[int, int] | None:
    """Returns the shape of the tiles of a tensor.

    Args:
        tensor: A device tensor.

    Returns:
        The rows and columns of a tile, or None for a strided tensor.

    Raises:
        TypeError: If ``tensor`` is not a tensor.
        ValueError: If it is not on the device.
    """
    shape = _C.tile_shape(check_tensor(tensor))
    return None if shape is None else (shape[0], shape[1])
