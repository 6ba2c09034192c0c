# SPDX-License-Identifier: BSD-3-Clause
"""Operators accept a host scalar with device tensors where CUDA's do."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

REFUSED: dict[str, Callable[[Tensor], object]] = {
    "cross_entropy": lambda x: F.cross_entropy(x[0], torch.tensor(1)),
    "embedding": lambda x: F.embedding(torch.tensor(1), x),
    "clamp": lambda x: x.clamp(min=torch.tensor(1.0)),
    "index_select": lambda x: x.index_select(0, torch.tensor(1)),
    "take": lambda x: x.take(torch.tensor(1)),
    "gather": lambda x: x[0].gather(0, torch.tensor(1)),
    "searchsorted": lambda x: torch.searchsorted(x[0], torch.tensor(1.0)),
    "masked_select": lambda x: x.masked_select(torch.tensor(True)),
    "polar": lambda x: torch.polar(x, torch.tensor(1.0)),
    "logaddexp": lambda x: torch.logaddexp(x, torch.tensor(1.0)),
    "addmm": lambda x: torch.addmm(torch.tensor(1.0), x, x.t()),
    "equal": lambda x: torch.equal(x[0, 0], torch.tensor(1.0)),
}

TAKEN: dict[str, Callable[[Tensor], Tensor]] = {
    "add": lambda x: x + torch.tensor(2.0),
    "out": lambda x: torch.mul(x, torch.tensor(2.0), out=torch.empty_like(x)),
    "pow": lambda x: torch.tensor(2.0) ** x,
    "where": lambda x: torch.where(x > 2, x, torch.tensor(0.0)),
    "maximum": lambda x: torch.maximum(x, torch.tensor(3.0)),
    "masked_fill": lambda x: x.masked_fill(x > 2, torch.tensor(0.0)),
    "index_put": lambda x: x.clone().index_put_((x > 2,), torch.tensor(0.0)),
    "foreach": lambda x: torch._foreach_mul([x, x], torch.tensor(2.0))[1],
    "index_fill": lambda x: x.index_fill(0, x[0, :1].long(), torch.tensor(7.0)),
}


# The tensors that an operator reads, in the text of its schema.
READ = re.compile(r"Tensor(?:\(\w!\))?(?:\[\])? self|Tensor(?!\(\w!\))")


def values(device: str) -> Tensor:
    return torch.arange(6.0, device=device).view(2, 3)


@pytest.mark.parametrize("name", REFUSED)
def test_number_of_the_host_is_refused_where_cuda_checks(
    device: str, name: str
) -> None:
    REFUSED[name](values("cpu"))
    with pytest.raises(RuntimeError, match="on the same device"):
        REFUSED[name](values(device))


@pytest.mark.parametrize("name", TAKEN)
def test_number_of_the_host_is_taken_where_cuda_takes_it(
    device: str, name: str
) -> None:
    result = TAKEN[name](values(device))
    assert result.device.type == device
    assert torch.equal(result.cpu(), TAKEN[name](values("cpu")))


@pytest.mark.parametrize(
    "optimizer", [torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD]
)
def test_fused_step_takes_a_learning_rate_of_the_host(
    device: str, optimizer: Callable[..., torch.optim.Optimizer]
) -> None:
    def stepped(where: str, lr: Tensor) -> Tensor:
        x = values(where).requires_grad_()
        steps = optimizer([x], lr=lr, fused=True)
        for _ in range(3):
            steps.zero_grad()
            (x * x).sum().backward()
            steps.step()
        return x.detach().cpu()

    for lr in (torch.tensor(0.1), torch.tensor([0.1])):
        assert torch.equal(stepped(device, lr), stepped("cpu", lr))
