# SPDX-License-Identifier: BSD-3-Clause
"""Autocast on the device of openreg-aten."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

import openreg_amp  # noqa: F401  registers what is tested here

LOW = [torch.float16, torch.bfloat16]


@pytest.mark.parametrize("dtype", LOW)
def test_matmul_runs_in_the_chosen_type(device, dtype):
    a, b = torch.randn(3, 4), torch.randn(4, 5)
    with torch.autocast(device, dtype=dtype):
        result = a.to(device) @ b.to(device)
    assert result.dtype == dtype
    assert torch.equal(result.cpu(), a.to(dtype) @ b.to(dtype))


def test_default_type_is_float16_as_on_cuda(device):
    a = torch.ones(2, 2, device=device)
    with torch.autocast(device):
        assert torch.mm(a, a).dtype == torch.float16


@pytest.mark.parametrize("dtype", LOW)
@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.softmax(x, 0),
        torch.exp,
        torch.sum,
        torch.norm,
        lambda x: torch.layer_norm(x, x.shape),
    ],
    ids=["softmax", "exp", "sum", "norm", "layer_norm"],
)
def test_sensitive_operators_run_in_float32(device, dtype, function):
    x = torch.randn(3, 4).to(dtype)
    with torch.autocast(device, dtype=dtype):
        result = function(x.to(device))
    assert result.dtype == torch.float32
    torch.testing.assert_close(result.cpu(), function(x.float()))


def test_explicit_type_is_respected(device):
    x = torch.ones(3, device=device, dtype=torch.float16)
    with torch.autocast(device):
        assert torch.softmax(x, 0, dtype=torch.float64).dtype == torch.float64


@pytest.mark.parametrize("dtype", LOW)
def test_promote_takes_the_widest_type(device, dtype):
    low, wide = torch.randn(4).to(dtype), torch.randn(4)
    with torch.autocast(device, dtype=dtype):
        mixed = torch.atan2(low.to(device), wide.to(device))
        narrow = torch.atan2(low.to(device), low.to(device))
    assert mixed.dtype == torch.float32
    assert narrow.dtype == dtype
    torch.testing.assert_close(mixed.cpu(), torch.atan2(low.float(), wide))


def test_promote_lets_index_put_mix_types(device):
    target = torch.zeros(4, device=device, dtype=torch.float16)
    index, values = torch.tensor([1, 3], device=device), torch.ones(2, device=device)
    with torch.autocast(device):
        result = torch.index_put(target, (index,), values)
    assert result.dtype == torch.float32
    assert result.cpu().tolist() == [0, 1, 0, 1]


def test_operators_without_a_rule_keep_their_type(device):
    with torch.autocast(device):
        for dtype in (torch.float16, torch.float32, torch.float64, torch.int64):
            x = torch.ones(2, device=device, dtype=dtype)
            assert torch.add(x, x).dtype == dtype


def test_float64_and_integers_are_not_cast(device):
    for dtype in (torch.float64, torch.int64):
        x = torch.ones(2, 2, device=device, dtype=dtype)
        with torch.autocast(device):
            assert torch.mm(x, x).dtype == dtype


def test_cpu_tensors_are_not_cast(device):
    x = torch.ones(2, 2)
    with torch.autocast(device):
        assert torch.mm(x, x).dtype == torch.float32


def test_error_of_a_banned_operator_names_the_replacement(device):
    p = torch.full((3,), 0.5, device=device)
    with (
        torch.autocast(device),
        pytest.raises(RuntimeError, match="binary_cross_entropy_with_logits"),
    ):
        F.binary_cross_entropy(p, p)
    assert F.binary_cross_entropy(p, p).item() == pytest.approx(0.6931, abs=1e-4)


def test_banned_operator_has_a_safe_substitute(device):
    x, y = torch.randn(3), torch.rand(3)
    with torch.autocast(device):
        loss = F.binary_cross_entropy_with_logits(x.half().to(device), y.to(device))
    assert loss.dtype == torch.float32
    expected = F.binary_cross_entropy_with_logits(x.half().float(), y)
    torch.testing.assert_close(loss.cpu(), expected)


def test_nested_regions_restore_the_outer_one(device):
    x = torch.ones(2, 2, device=device)
    with torch.autocast(device, dtype=torch.float16):
        with torch.autocast(device, enabled=False):
            assert torch.mm(x, x).dtype == torch.float32
        with torch.autocast(device, dtype=torch.bfloat16):
            assert torch.mm(x, x).dtype == torch.bfloat16
        assert torch.mm(x, x).dtype == torch.float16
    assert torch.mm(x, x).dtype == torch.float32
    assert not torch.is_autocast_enabled(device)


def test_region_ends_with_an_error_inside(device):
    x = torch.ones(2, 3, device=device)
    with pytest.raises(RuntimeError), torch.autocast(device):
        torch.mm(x, x)
    assert not torch.is_autocast_enabled(device)
    y = torch.ones(2, 2, device=device)
    assert torch.mm(y, y).dtype == torch.float32


def test_unsupported_type_warns_and_stays_off(device):
    x = torch.ones(2, 2, device=device)
    with (
        pytest.warns(UserWarning, match="Disabling autocast"),
        torch.autocast(device, dtype=torch.float64),
    ):
        assert torch.mm(x, x).dtype == torch.float32


def test_weights_are_cast_once_in_a_region(device):
    weight = torch.ones(2, 2, device=device, requires_grad=True)
    with torch.autocast(device):
        products = [torch.mm(weight.detach(), weight) for _ in range(2)]
    (first, second) = (product.grad_fn.next_functions[1][0] for product in products)
    assert first.name() == "ToCopyBackward0"
    assert first is second


@pytest.mark.parametrize("dtype", LOW)
def test_backward_gives_gradients_in_the_type_of_the_weight(device, dtype):
    linear = torch.nn.Linear(4, 2)
    x = torch.randn(3, 4)

    def gradients(where):
        copy = torch.nn.Linear(4, 2).to(where)
        copy.load_state_dict(linear.state_dict())
        with torch.autocast(where, dtype=dtype):
            copy(x.to(where)).sum().backward()
        return [parameter.grad for parameter in copy.parameters()]

    for ours, cpu in zip(gradients(device), gradients("cpu"), strict=True):
        assert ours.dtype == torch.float32
        torch.testing.assert_close(ours.cpu(), cpu, atol=2e-2, rtol=2e-2)


def test_functions_of_higher_order_operators_are_within_autocast(device):
    x = torch.randn(4, 4).to(device)
    with torch.autocast(device, dtype=torch.bfloat16):
        cond = torch.ops.higher_order.cond
        result = cond(x.sum() > 0, lambda x: x @ x, lambda x: x @ -x, (x,))
    assert result.dtype == torch.bfloat16
    expected = x.cpu().bfloat16() @ x.cpu().bfloat16()
    assert result.abs().cpu().equal(expected.abs())
