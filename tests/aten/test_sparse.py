# SPDX-License-Identifier: BSD-3-Clause
"""Sparse tensors run the CPU's sparse kernels on the device's indices and values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from openreg_conformance.checks.mirrors import parts

LAYOUTS = [
    torch.sparse_coo,
    torch.sparse_csr,
    torch.sparse_csc,
    torch.sparse_bsr,
    torch.sparse_bsc,
]

pytestmark = pytest.mark.filterwarnings("ignore:Sparse .* tensor support is in beta")


@pytest.fixture(autouse=True)
def checked_invariants() -> Iterator[None]:
    """Makes PyTorch check every new sparse tensor."""
    with torch.sparse.check_sparse_tensor_invariants(True):
        yield


def dense() -> Tensor:
    return torch.tensor([[0.0, 2.0, 0.0, 1.0], [3.0, 0.0, 0.0, 0.0]])


def sparse(layout: torch.layout) -> Tensor:
    blocks = layout in (torch.sparse_bsr, torch.sparse_bsc)
    return dense().to_sparse(layout=layout, blocksize=(1, 2) if blocks else None)


@pytest.fixture
def alike(
    device: str, same: Callable[[Any, Any], None]
) -> Callable[[Tensor, Tensor], None]:
    """Returns a function that compares the components of a result with the CPU's."""

    def compare(result: Tensor, expected: Tensor) -> None:
        assert result.device.type == device
        assert result.layout == expected.layout
        assert result.shape == expected.shape
        if result.layout == torch.sparse_coo:
            assert result.is_coalesced() == expected.is_coalesced()
        clones = [[each.clone() for each in parts(t)] for t in (result, expected)]
        same(*clones)

    return compare


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_sparse_tensor_goes_to_the_device_and_back(device, alike, layout) -> None:
    x = sparse(layout)
    moved = x.to(device)
    alike(moved, x)
    assert all(each.device.type == device for each in parts(moved))
    assert moved.cpu().device.type == "cpu"
    assert moved.cpu().to_dense().equal(dense())
    alike(moved.clone(), x)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_dense_tensor_becomes_sparse_and_dense_again(device, alike, layout) -> None:
    blocks = layout in (torch.sparse_bsr, torch.sparse_bsc)
    made = (
        dense()
        .to(device)
        .to_sparse(layout=layout, blocksize=(1, 2) if blocks else None)
    )
    alike(made, sparse(layout))
    assert made.to_dense().cpu().equal(dense())


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_operators_keep_the_layout_and_give_the_bits_of_the_cpu(
    device, alike, layout
) -> None:
    x = sparse(layout)
    for function in (torch.abs, torch.neg, torch.sin, lambda t: t * 2, torch.clone):
        alike(function(x.to(device)), function(x))


@pytest.mark.parametrize("layout", LAYOUTS[:2], ids=str)
def test_sparse_and_dense_tensors_multiply(device, same, layout) -> None:
    x, y = sparse(layout), torch.randn(4, 3)
    same(x.to(device) @ y.to(device), x @ y)
    same(torch.mv(x.to(device), y[:, 0].to(device)), torch.mv(x, y[:, 0]))


def test_coo_tensor_is_made_of_device_tensors_without_a_copy(device) -> None:
    indices = torch.tensor([[0, 1, 1], [2, 0, 2]], device=device)
    values = torch.tensor([3.0, 4.0, 5.0], device=device)
    made = torch.sparse_coo_tensor(indices, values, (2, 3))
    assert made._values().data_ptr() == values.data_ptr()
    values.mul_(2)
    assert made.to_dense().cpu().tolist() == [[0, 0, 6], [8, 0, 10]]


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize("coalesced", [True, False, None], ids=str)
def test_invariants_of_a_coo_tensor_are_checked(
    device, alike, dtype, coalesced
) -> None:
    def make(device: str, indices: list[list[int]]) -> Tensor:
        count = len(indices[0])
        return torch.sparse_coo_tensor(
            torch.tensor(indices, dtype=dtype, device=device),
            torch.arange(count, dtype=torch.float32, device=device),
            (2, 3) if len(indices) == 2 else (4,),
            is_coalesced=coalesced,
            check_invariants=True,
        )

    for right in ([[0, 1, 1], [2, 0, 2]], [[1, 3]], [[], []], [[1], [2]]):
        alike(make(device, right), make("cpu", right))
    for wrong in ([[1, 0], [0, 1]], [[0, 0], [1, 1]], [[3, 1]], [[2], [0]], [[-1]]):
        raised = []
        for each in (device, "cpu"):
            try:
                raised.append(str(make(each, wrong).is_coalesced()))
            except RuntimeError as error:
                raised.append(str(error))
        assert raised[0] == raised[1]


def test_coo_tensor_is_summed_up_where_an_index_repeats(device, alike) -> None:
    x = torch.sparse_coo_tensor([[1, 0, 1], [2, 0, 2]], [1.0, 2.0, 3.0], (2, 3))
    moved = x.to(device)
    assert not moved.is_coalesced()
    alike(moved.coalesce(), x.coalesce())
    alike(moved + moved, x + x)


def test_operators_in_place_change_indices_values_and_size(device, alike) -> None:
    for change in (
        lambda t: t.mul_(3),
        lambda t: t.zero_(),
        lambda t: t.add_(torch.eye(2, 4).to_sparse().to(t.device)),
        lambda t: t.sparse_resize_((5, 6), 2, 0),
        lambda t: t.sparse_resize_and_clear_((3, 1), 1, 1),
        lambda t: t.copy_(torch.eye(2, 4).to_sparse().to(t.device)),
        lambda t: t.copy_(torch.eye(2, 4).to_sparse()),
    ):
        x = sparse(torch.sparse_coo)
        moved = x.to(device)
        alike(change(moved), change(x))
        alike(moved, x)


@pytest.mark.parametrize("layout", LAYOUTS[:2], ids=str)
def test_operators_write_to_arguments_that_they_read(device, alike, layout) -> None:
    changes = [
        lambda t, other: torch.mul(t, other, out=t),
        lambda t, other: torch.abs(t, out=t),
    ]
    if layout == torch.sparse_coo:  # the CPU's sum in CSR reads freed memory
        changes.append(lambda t, other: torch.add(t, other, out=t))
        changes.append(lambda t, other: torch.add(other, t, out=t))
    for change in changes:
        x = sparse(layout)
        other = torch.eye(2, 4).add(dense()).to_sparse(layout=layout)
        moved = x.to(device)
        alike(change(moved, other.to(device)), change(x, other))
        alike(moved, x)


def test_gradients_of_sparse_products_are_those_of_the_cpu(device, alike, same) -> None:
    grads = []
    for place in ("cpu", device):
        x = sparse(torch.sparse_coo).to(place).requires_grad_()
        y = torch.ones(4, 3).to(place).requires_grad_()
        torch.sparse.mm(x, y).sum().backward()
        grads.append((x.grad, y.grad))
    alike(grads[1][0], grads[0][0])
    same(grads[1][1], grads[0][1])


def test_embedding_gives_a_sparse_gradient_that_optimizers_take(device, same) -> None:
    weights = []
    for place in ("cpu", device):
        torch.manual_seed(0)
        layer = torch.nn.Embedding(6, 3, sparse=True).to(place)
        optimizer = torch.optim.SparseAdam(layer.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            layer(torch.tensor([1, 4, 1], device=place)).pow(2).sum().backward()
            assert layer.weight.grad.layout == torch.sparse_coo
            optimizer.step()
        weights.append(layer.weight.detach())
    same(weights[1], weights[0])


def test_wrong_indices_are_refused_in_the_words_of_the_cpu(device) -> None:
    messages = []
    for place in ("cpu", device):
        with pytest.raises(RuntimeError) as caught:
            torch.sparse_coo_tensor([[7], [0]], [1.0], (2, 3), device=place)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_sparse_tensors_of_host_and_device_do_not_mix(device) -> None:
    x = sparse(torch.sparse_coo)
    with pytest.raises(RuntimeError, match="same device"):
        torch.sparse.mm(x.to(device), torch.ones(4, 2))
    with pytest.raises(RuntimeError, match=r"device|backend"):
        x.to(device) + x


def test_sparse_tensor_leaves_no_memory_behind(device, settled_memory) -> None:
    before = settled_memory(0)
    x = sparse(torch.sparse_coo).to(device)
    y = (x + x).coalesce().to_sparse_csr()
    assert settled_memory(0) > before
    del x, y
    assert settled_memory(0) == before


@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin"])
def test_reducing_product_saves_tensors_for_backward(device, same, reduce) -> None:
    results = []
    for place in ("cpu", device):
        x = sparse(torch.sparse_csr).to(place, copy=True).requires_grad_()
        y = torch.arange(12.0).reshape(4, 3).to(place).requires_grad_()
        product = torch.sparse.mm(x, y, reduce)
        product.sum().backward()
        results.append((product.detach(), x.grad.values(), y.grad))
    same(results[1], results[0])
