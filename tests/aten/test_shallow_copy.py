# SPDX-License-Identifier: BSD-3-Clause
"""Tensors that become tensors of another device in place."""

from __future__ import annotations

import pytest
import torch

compatible = torch._has_compatible_shallow_copy_type


def train(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Takes one step."""
    place = next(model.parameters()).device
    model(torch.ones(1, 3, device=place)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()


def test_model_that_moves_keeps_its_parameters(device: str) -> None:
    model = torch.nn.Linear(3, 2)
    before = list(model.parameters())
    values = [p.detach().clone() for p in before]
    for place in (f"{device}:0", f"{device}:1", "cpu", device):
        model.to(place)
        for old, new, value in zip(before, model.parameters(), values, strict=True):
            assert new is old
            assert new.device.type == torch.device(place).type
            assert torch.equal(new.cpu(), value)


def test_optimizer_from_before_the_move_trains_as_on_the_cpu(device: str) -> None:
    torch.manual_seed(0)
    models = [torch.nn.Linear(3, 2) for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.5) for m in models]
    models[1].to(device)
    for _ in range(2):
        for model, optimizer in zip(models, optimizers, strict=True):
            train(model, optimizer)
    for one, other in zip(models[0].parameters(), models[1].parameters(), strict=True):
        assert torch.equal(one, other.cpu())


def test_gradient_moves_with_its_parameter(device: str) -> None:
    model = torch.nn.Linear(3, 1, bias=False)
    model(torch.ones(1, 3)).backward()
    model.to(f"{device}:1")
    assert model.weight.grad is not None
    assert model.weight.grad.device == torch.device(f"{device}:1")
    model(torch.ones(1, 3, device=f"{device}:1")).backward()
    assert model.weight.grad.tolist() == [[2.0, 2.0, 2.0]]


def test_backward_after_a_move_accumulates_on_the_new_device(device: str) -> None:
    weight = torch.nn.Parameter(torch.ones(2))
    (weight * 1).sum().backward()  # PyTorch caches the gradient accumulator
    weight.data = weight.data.to(device)
    weight.grad = None
    (weight * 3).sum().backward()
    assert weight.grad is not None
    assert weight.grad.device.type == device
    assert weight.grad.tolist() == [3.0, 3.0]


def test_dtype_and_device_change_together(device: str) -> None:
    model = torch.nn.Linear(3, 2)
    weight = model.weight
    model.to(device, torch.float16)
    assert model.weight is weight
    assert (weight.dtype, weight.device.type) == (torch.float16, device)


def test_data_of_another_device_is_taken_by_later_views(
    device: str,
) -> None:
    x = torch.zeros(2, 3)
    x.data = torch.ones(4, device=device)
    assert x.shape == (4,)
    assert (x + 1).tolist() == [2.0] * 4
    x.data = torch.full((2,), 5.0)
    assert torch.equal(x, torch.tensor([5.0, 5.0]))


def test_lazy_module_that_moves_before_its_first_use_stays_lazy(device: str) -> None:
    layer = torch.nn.LazyLinear(2).to(device)
    assert layer(torch.ones(1, 3, device=device)).shape == (1, 2)
    assert layer.weight.device.type == device


def test_dense_tensors_are_compatible(device: str) -> None:
    x = torch.ones(1, device=device)
    for place in ("cpu", device, f"{device}:1"):
        y = torch.ones(1, device=place)
        assert compatible(x, y)
        assert compatible(y, x)


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_tensors_of_other_classes_are_not(device: str) -> None:
    x = torch.ones(2, 2, device=device)
    others = [
        x.to_sparse(),
        x.to_sparse_csr(),
        torch.quantize_per_tensor(x, 1.0, 0, torch.qint8),
        x.to("meta"),
    ]
    for other in others:
        assert not compatible(x, other)
        assert not compatible(other, x)
        with pytest.raises(RuntimeError, match="incompatible tensor type"):
            x.data = other
