# SPDX-License-Identifier: BSD-3-Clause
"""Matrices in tiles: tensors of the backend's own class."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch

to_tiled = torch.openreg.to_tiled
from_tiled = torch.openreg.from_tiled
tile_shape = torch.openreg.tile_shape


@pytest.fixture
def matrix() -> torch.Tensor:
    """Returns a matrix that tiles of 2 x 4 do not divide."""
    return torch.arange(35.0, device="openreg:1").view(5, 7)


@pytest.mark.parametrize("tile", [(1, 1), (2, 4), (5, 7), (16, 16)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8])
def test_values_come_back(
    matrix: torch.Tensor, tile: tuple[int, int], dtype: torch.dtype
) -> None:
    matrix = matrix.to(dtype)
    tiled = to_tiled(matrix, tile)
    assert (tiled.shape, tiled.dtype, tiled.device) == (
        matrix.shape,
        matrix.dtype,
        matrix.device,
    )
    assert tile_shape(tiled) == tile
    again = from_tiled(tiled)
    assert again.is_contiguous()
    assert tile_shape(again) is None
    assert torch.equal(again, matrix)
    assert torch.equal(from_tiled(to_tiled(matrix.t(), tile)), matrix.t())


def test_tiles_hold_copies(matrix: torch.Tensor) -> None:
    tiled = to_tiled(matrix)
    expected = matrix.clone()
    matrix.zero_()
    from_tiled(tiled).zero_()
    assert torch.equal(from_tiled(tiled), expected)


def test_memory_is_that_of_whole_tiles() -> None:
    matrix = torch.ones(17, 16, device="openreg")
    before = torch.openreg.memory_allocated()
    tiled = to_tiled(matrix, (16, 16))
    assert torch.openreg.memory_allocated() - before == 2 * 16 * 16 * 4
    kept = tiled.detach()
    del tiled
    assert torch.openreg.memory_allocated() - before == 2 * 16 * 16 * 4
    del kept
    assert torch.openreg.memory_allocated() == before


def test_shallow_copies_keep_the_layout(matrix: torch.Tensor) -> None:
    tiled = to_tiled(matrix, (2, 4))
    parameter = torch.nn.Parameter(tiled, requires_grad=False)
    module = torch.nn.Module()
    module.weight = parameter
    module.to("openreg:1")
    copies = [tiled.detach(), tiled.data, parameter, module.weight]
    for each in copies:
        assert tile_shape(each) == (2, 4)
        assert torch.equal(from_tiled(each), matrix)


def test_data_of_the_same_class_is_taken(matrix: torch.Tensor) -> None:
    x = to_tiled(matrix, (2, 4))
    x.data = to_tiled(matrix[:3] + 1, (1, 2))
    assert tile_shape(x) == (1, 2)
    assert torch.equal(from_tiled(x), matrix[:3] + 1)


def test_data_of_the_other_class_is_refused(matrix: torch.Tensor) -> None:
    tiled = to_tiled(matrix)
    expected = matrix.clone()
    for to, data in ((matrix, tiled), (tiled, matrix), (torch.ones(1), tiled)):
        with pytest.raises(RuntimeError, match="incompatible tensor type"):
            to.data = data
    assert torch.equal(matrix, expected)
    assert torch.equal(from_tiled(tiled), expected)


USES: dict[str, Callable[[torch.Tensor], object]] = {
    "add": lambda x: x + 1,
    "add_": lambda x: x.add_(1),
    "zero_": lambda x: x.zero_(),
    "matmul": lambda x: x @ torch.ones(7, 2, device="openreg:1"),
    "sum": lambda x: x.sum(),
    "boxed": lambda x: torch.linalg.pinv(x),
    "cat": lambda x: torch.cat([x, x]),
    "foreach": lambda x: torch._foreach_add([x], 1),
    "source of a copy": lambda x: torch.empty(5, 7, device="openreg:1").copy_(x),
    "target of a copy": lambda x: x.copy_(torch.ones(5, 7)),
    "cpu": lambda x: x.cpu(),
    "other device": lambda x: x.to("openreg:0"),
    "clone": lambda x: x.clone(),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": pickle.dumps,
    "repr": repr,
    "view": lambda x: x.view(-1),
    "index": lambda x: x[0],
    "stride": lambda x: x.stride(),
    "data_ptr": lambda x: x.data_ptr(),
    "storage": lambda x: x.untyped_storage(),
    "resize_": lambda x: x.resize_(2),
    "dlpack": torch.utils.dlpack.to_dlpack,
    "linear": lambda x: torch.nn.functional.linear(
        torch.ones(1, 7, device="openreg:1"), x
    ),
}


@pytest.mark.parametrize("use", USES)
def test_functions_without_support_for_the_layout_refuse_it(
    matrix: torch.Tensor, use: str
) -> None:
    tiled = to_tiled(matrix, (2, 4))
    with pytest.raises(
        (NotImplementedError, RuntimeError),
        match=r"torch.openreg.from_tiled|TiledTensorImpl|doesn't have storage",
    ):
        USES[use](tiled)
    assert torch.equal(from_tiled(tiled), matrix)
    torch.openreg.synchronize()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((3,), TypeError, "expected a torch.Tensor, got 3"),
        ((torch.ones(2, 2),), ValueError, "expected one on openreg, got one on cpu"),
        (
            (torch.ones(2).openreg(),),
            RuntimeError,
            "to_tiled: expected a strided matrix, but got 1 dimensions",
        ),
        (
            (torch.ones(2, 2).openreg(), (0, 4)),
            RuntimeError,
            "a tile of at least 1 row and 1 column, got 0 x 4",
        ),
        (
            (torch.ones(2, 2, device="openreg", requires_grad=True),),
            RuntimeError,
            "to_tiled is not differentiable",
        ),
        (
            (to_tiled(torch.ones(2, 2).openreg()),),
            RuntimeError,
            "expected a strided matrix, but got a tiled tensor",
        ),
    ],
)
def test_wrong_arguments_are_refused(
    arguments: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        to_tiled(*arguments)


def test_tensor_with_strides_is_not_read_as_tiles(matrix: torch.Tensor) -> None:
    with pytest.raises(RuntimeError, match="from_tiled: expected a tiled tensor"):
        from_tiled(matrix)
