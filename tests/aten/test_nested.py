# SPDX-License-Identifier: BSD-3-Clause
"""Nested tensors with strides run the CPU's kernels; their sizes are on the host."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

pytestmark = pytest.mark.filterwarnings("ignore:.*nested tensors.*")


def pieces() -> list[Tensor]:
    torch.manual_seed(0)
    return [torch.randn(2, 3), torch.randn(4, 3), torch.randn(1, 3)]


def inside(tensor: Tensor) -> list[Tensor]:
    return [each.clone() for each in tensor.unbind()]


def test_nested_tensor_goes_to_the_device_and_back(device: str, same) -> None:
    x = torch.nested.nested_tensor(pieces())
    moved = x.to(device)
    assert moved.is_nested
    assert moved.device.type == device
    same(inside(moved), pieces())
    assert all(a.equal(b) for a, b in zip(moved.cpu().unbind(), pieces(), strict=True))


def test_nested_tensor_is_made_on_the_device(device: str, same) -> None:
    made = torch.nested.nested_tensor(pieces(), device=device)
    same(inside(made), pieces())
    copied = torch.nested.as_nested_tensor([each.to(device) for each in pieces()])
    same(inside(copied), pieces())


def test_sizes_of_a_nested_tensor_are_on_the_host(device: str) -> None:
    x = torch.nested.nested_tensor(pieces(), device=device) * 2
    assert x._nested_tensor_size().device.type == "cpu"
    assert x._nested_tensor_size().tolist() == [[2, 3], [4, 3], [1, 3]]
    assert x._nested_tensor_strides().device.type == "cpu"
    assert x._nested_tensor_storage_offsets().device.type == "cpu"


def test_operators_on_nested_tensors_give_the_bits_of_the_cpu(
    device: str, same
) -> None:
    x = torch.nested.nested_tensor(pieces())
    moved = x.to(device)
    weight, bias = torch.randn(5, 3), torch.randn(3)
    for function in (
        lambda t: t + t,
        lambda t: t * 3,
        torch.relu,
        lambda t: t.clone(),
        lambda t: t.transpose(1, 2),
        lambda t: torch.nn.functional.gelu(t),
        lambda t: torch.nn.functional.linear(t, weight.to(t.device)),
        lambda t: torch.nn.functional.layer_norm(
            t, (3,), weight[0].to(t.device), bias.to(t.device)
        ),
        lambda t: torch.softmax(t, -1),
        lambda t: torch.nested.nested_tensor(list(t.unbind()), device=t.device),
    ):
        same(inside(function(moved)), inside(function(x)))
    same(moved.to_padded_tensor(7.0), x.to_padded_tensor(7.0))


def test_nested_tensor_is_written_in_place(device: str, same) -> None:
    x = torch.nested.nested_tensor(pieces(), device=device)
    x.mul_(2)
    same(inside(x), [2 * each for each in pieces()])
    x.copy_(torch.nested.nested_tensor(pieces()))
    same(inside(x), pieces())


def test_gradients_reach_the_tensors_inside(device: str, same) -> None:
    grads = []
    for place in ("cpu", device):
        leaves = [each.to(place).requires_grad_() for each in pieces()]
        x = torch.nested.as_nested_tensor(leaves)
        (x * x).to_padded_tensor(0.0).sum().backward()
        grads.append([each.grad for each in leaves])
    same(grads[1], grads[0])


def test_attention_of_nested_tensors_equals_the_cpu(device: str, same) -> None:
    def attend(place: str) -> list[torch.Tensor]:
        torch.manual_seed(0)
        parts = [torch.randn(2, size, 8) for size in (3, 5)]
        x = torch.nested.nested_tensor(parts, device=place)
        return inside(torch.nn.functional.scaled_dot_product_attention(x, x, x))

    same(attend(device), attend("cpu"))
