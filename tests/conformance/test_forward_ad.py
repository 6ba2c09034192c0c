# SPDX-License-Identifier: BSD-3-Clause
"""Every operator has the directional derivatives that it has on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.testing._internal.opinfo.core import OpInfo

from openreg_conformance.checks.forward_ad import check_forward_ad
from openreg_conformance.checks.sweep import SWEPT, sampled, sweep_name
from openreg_conformance.checks.tally import Tally, attempt, quiet

from . import DEVICE

Function = Callable[[Tensor], Tensor]

pytestmark = pytest.mark.timeout(600, method="thread")


@pytest.mark.parametrize("op", SWEPT, ids=sweep_name)
def test_tangents_of_operator_agree_with_the_cpu(
    op: OpInfo, whole: bool, tally: Tally
) -> None:
    with quiet():
        for i, sample in sampled(op, whole=whole):
            check_forward_ad(tally, f"sample {i}", op, sample)


def attend(x: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(x[None], x[None], x.flip(0)[None])


FUNCTIONS: dict[str, Function] = {
    "polynomial": lambda x: x**3 - 2 * x * x.t(),
    "perceptron": lambda x: F.linear(torch.tanh(x @ x), x, x[0]).sigmoid(),
    "convolution": lambda x: F.conv2d(x[None, None], x[:3, :3][None, None]),
    "norm": lambda x: F.layer_norm(x, (4,), x[0], x[1]),
    "attention": attend,
    "loss": lambda x: F.cross_entropy(x, torch.arange(4, device=x.device)),
    "solution": lambda x: torch.linalg.solve(x @ x.t() + 5 * torch.eye(4).to(x), x),
    "constant": lambda x: torch.ones_like(x).sum(),
    "dot": lambda x: torch.dot(x[0], x[1]) * x,
    "indices": lambda x: x[torch.tensor([2, 0]).to(x.device)].cumsum(0).prod(),
}
TRANSFORMS: dict[str, Callable[[Function, Tensor], Any]] = {
    "jvp": lambda f, x: torch.func.jvp(f, (x,), (x.cos(),)),
    "jacfwd": lambda f, x: torch.func.jacfwd(f)(x),
    "forward over forward": lambda f, x: torch.func.jacfwd(
        lambda y: torch.func.jvp(f, (y,), (torch.ones_like(y),))[1]
    )(x),
    "hessian": lambda f, x: torch.func.hessian(lambda y: f(y).sum())(x),
    "linearize": lambda f, x: torch.func.linearize(f, x)[1](x.sin()),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_transform_agrees_with_the_cpu(
    function: str, transform: str, tally: Tally
) -> None:
    x = torch.randn(4, 4, generator=torch.Generator().manual_seed(0))

    def run(device: str) -> Any:
        return TRANSFORMS[transform](FUNCTIONS[function], x.to(device))

    mine, expected = (attempt(lambda d=d: run(d)) for d in (DEVICE, "cpu"))
    tally.compare("tangent", f"{transform} of {function}", mine, expected)
