# SPDX-License-Identifier: BSD-3-Clause
"""Tensors that take the data of another device's: identity is kept as on CUDA."""

from __future__ import annotations

import pytest
import torch
from torch import nn

DEVICE = "openreg"
pytestmark = pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")


def test_data_of_another_device_becomes_the_tensors_own() -> None:
    x = torch.ones(2)
    x.data = torch.arange(3.0, device=DEVICE)
    assert x.device.type == DEVICE
    assert x.tolist() == [0, 1, 2]
    x.data = torch.zeros(4)
    assert x.device.type == "cpu"


def test_grad_is_moved_with_its_parameter() -> None:
    layer = nn.Linear(2, 2)
    layer(torch.ones(1, 2)).sum().backward()
    weight, grad = layer.weight, layer.weight.grad
    layer.to(DEVICE)
    assert layer.weight is weight
    assert layer.weight.grad is grad
    assert weight.grad is not None
    assert weight.grad.device.type == DEVICE


def test_parameter_moves_between_devices_and_back() -> None:
    layer = nn.Linear(2, 2)
    weight = layer.weight
    for where in (f"{DEVICE}:0", f"{DEVICE}:1", "cpu", DEVICE):
        layer.to(where)
        assert layer.weight is weight
        assert weight.device == torch.empty(0, device=where).device


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_strided_and_sparse_tensors_are_not_compatible(layout: torch.layout) -> None:
    dense = torch.eye(2)
    sparse = dense.to_sparse(layout=layout)
    for one, other in ((dense, sparse), (sparse, dense)):
        for mine, theirs in ((one.to(DEVICE), other), (one, other.to(DEVICE))):
            assert not torch._has_compatible_shallow_copy_type(mine, theirs)
            with pytest.raises(RuntimeError, match="incompatible tensor type"):
                mine.data = theirs


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_sparse_parameter_is_moved_as_a_new_object(layout: torch.layout) -> None:
    module = nn.Module()
    module.weight = nn.Parameter(torch.eye(2).to_sparse(layout=layout))
    module.to(DEVICE)
    assert module.weight.device.type == DEVICE
    assert torch.equal(module.weight.detach().to_dense().cpu(), torch.eye(2))


def test_subclass_with_torch_dispatch_is_not_asked() -> None:
    seen: list[str] = []

    class Logged(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            seen.append(str(func))
            with torch._C._DisableTorchDispatch():
                return func(*args, **(kwargs or {}))

    x = torch.ones(2, device=DEVICE).as_subclass(Logged)
    assert torch._has_compatible_shallow_copy_type(x, torch.ones(2))
    assert not any("shallow_copy" in name for name in seen)
