# SPDX-License-Identifier: BSD-3-Clause
"""Tensors of zeros without data, which forward AD makes, behave as on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad

# PyTorch compiles its decompositions for forward AD with TorchScript.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")


def zeros(*size: int, device: Any) -> Tensor:
    return torch._efficientzerotensor(size, device=device)


def test_zero_tensor_is_marked_as_such(device: str) -> None:
    x = zeros(3, device=device)
    assert x._is_zerotensor()
    assert x.device.type == device
    assert x.detach()._is_zerotensor()


def test_clone_of_a_zero_tensor_has_data(device: str) -> None:
    x = zeros(2, 3, device=device).clone()
    assert not x._is_zerotensor()
    assert torch.equal(x.add_(1).cpu(), torch.ones(2, 3))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64])
def test_zero_tensor_is_copied_in_every_direction(
    device: str, dtype: torch.dtype
) -> None:
    filled = torch.ones(3, dtype=dtype)
    assert torch.equal(
        filled.to(device).copy_(zeros(3, device=device)).cpu(), filled * 0
    )
    assert torch.equal(
        filled.to(device).copy_(zeros(3, device="cpu")).cpu(), filled * 0
    )
    assert torch.equal(filled.clone().copy_(zeros(3, device=device)), filled * 0)
    assert torch.equal(zeros(3, device=device).cpu(), torch.zeros(3))
    assert zeros(1, device=device).item() == 0


def test_writing_to_a_zero_tensor_is_refused_with_the_words_of_the_cpu(
    device: str,
) -> None:
    for where in ("cpu", device):
        with pytest.raises(RuntimeError, match="ZeroTensors are immutable"):
            zeros(3, device=where).copy_(torch.ones(3, device=where))
        with pytest.raises(RuntimeError, match="ZeroTensors are immutable"):
            zeros(3, device=where).add_(1)


PRODUCTS: dict[str, Callable[..., Tensor]] = {
    "dot": torch.dot,
    "vdot": torch.vdot,
    "inner": torch.inner,
    "matmul": lambda x, y: x @ y,
    "mul": torch.mul,
    "add": torch.add,
    "div": torch.div,
    "ldexp": torch.ldexp,
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_result_of_a_zero_tensor_is_one_where_the_cpus_is(
    name: str, device: str
) -> None:
    function = PRODUCTS[name]
    for order in (0, 1):
        results = {}
        for where in ("cpu", device):
            pair = [zeros(4, device=where), torch.arange(1.0, 5.0).to(where)]
            results[where] = function(*(pair if order == 0 else pair[::-1]))
        mine, expected = results[device], results["cpu"]
        assert mine.device.type == device
        assert mine._is_zerotensor() == expected._is_zerotensor()
        assert torch.equal(mine.clone().cpu(), expected.clone())


JVPS: dict[str, Callable[..., Tensor]] = {
    "addmm": lambda x: torch.addmm(x, x, x),
    "addmv": lambda x: torch.addmv(x[0], x, x[1]),
    "addcmul": lambda x: torch.addcmul(x, x, x),
    "addcdiv": lambda x: torch.addcdiv(x, x, x),
    "index_add": lambda x: x.index_add(0, torch.tensor([1, 0], device=x.device), x[:2]),
    "sgn": torch.sgn,
    "ldexp": lambda x: torch.ldexp(x, x),
    "dot": lambda x: torch.dot(x[0], x[1]),
}


@pytest.mark.parametrize("name", JVPS)
@pytest.mark.parametrize("zero", [False, True])
def test_forward_derivatives_are_those_of_the_cpu(
    name: str, zero: bool, device: str
) -> None:
    results = []
    for where in ("cpu", device):
        x = torch.arange(1.0, 10.0).view(3, 3).to(where)
        tangent = zeros(3, 3, device=where) if zero else torch.ones_like(x)
        with forward_ad.dual_level():
            result = forward_ad.unpack_dual(
                JVPS[name](forward_ad.make_dual(x, tangent))
            )
            found = result.tangent
            results.append(
                [result.primal.cpu(), None if found is None else found.clone().cpu()]
            )
    assert torch.equal(results[0][0], results[1][0])
    assert (results[0][1] is None) == (results[1][1] is None)
    assert results[0][1] is None or torch.equal(results[0][1], results[1][1])


@pytest.mark.parametrize("transform", [torch.func.hessian, torch.func.jacfwd])
@pytest.mark.parametrize("name", ["dot", "vdot", "inner", "matmul"])
def test_transforms_of_products_are_those_of_the_cpu(
    transform: Callable[..., Any], name: str, device: str
) -> None:
    x = torch.arange(1.0, 4.0)
    expected = transform(lambda x: PRODUCTS[name](x, x * x))(x)
    mine = transform(lambda x: PRODUCTS[name](x, x * x))(x.to(device))
    assert torch.equal(mine.cpu(), expected)
