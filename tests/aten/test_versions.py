# SPDX-License-Identifier: BSD-3-Clause
"""Version counters increase exactly as on the CPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from support.latches import Latches

Step = Callable[[list[Tensor], list[Tensor]], object]

FOREACH: dict[str, Step] = {
    "add number": lambda x, y: torch._foreach_add_(x, 1.0),
    "add list": lambda x, y: torch._foreach_add_(x, y, alpha=2),
    "add tensor": lambda x, y: torch._foreach_add_(x, y[0].sum()),
    "mul number": lambda x, y: torch._foreach_mul_(x, 2.0),
    "div numbers": lambda x, y: torch._foreach_div_(x, [2.0, 4.0]),
    "div number": lambda x, y: torch._foreach_div_(x, 2.0),
    "lerp": lambda x, y: torch._foreach_lerp_(x, y, 0.5),
    "addcmul": lambda x, y: torch._foreach_addcmul_(x, y, y, 0.5),
    "addcdiv": lambda x, y: torch._foreach_addcdiv_(x, y, y, 0.5),
    "addcdiv numbers": lambda x, y: torch._foreach_addcdiv_(x, y, y, [0.5, 0.25]),
    "sqrt": lambda x, y: torch._foreach_sqrt_(x),
    "copy": lambda x, y: torch._foreach_copy_(x, y),
    "zero": lambda x, y: torch._foreach_zero_(x),
    "same tensor twice": lambda x, y: torch._foreach_add_([x[0], x[0]], 1.0),
    "view": lambda x, y: torch._foreach_add_([x[0][:2], x[1]], 1.0),
    "functional": lambda x, y: torch._foreach_sqrt(x),
    "fused adam": lambda x, y: torch._fused_adam_(
        x,
        y,
        [each * 0 for each in x],
        [each * 0 for each in x],
        [],
        [torch.ones((), device=each.device) for each in x],
        lr=0.1,
        beta1=0.9,
        beta2=0.99,
        weight_decay=0.0,
        eps=1e-8,
        amsgrad=False,
        maximize=False,
    ),
}


def versions(step: Step, where: str, hold: Callable[[], object] = int) -> list[int]:
    x = [torch.arange(1.0, 5.0).to(where), torch.ones(2, 3).to(where)]
    y = [torch.arange(2.0, 6.0).to(where), torch.ones(2, 3).to(where)]
    before = [each._version for each in x + y]
    hold()
    step(x, y)
    return [each._version - b for each, b in zip(x + y, before, strict=True)]


@pytest.mark.parametrize("name", FOREACH)
@pytest.mark.parametrize("held", [False, True], ids=["idle", "held"])
def test_versions_after_a_foreach_operator_are_those_of_the_cpu(
    name: str, held: bool, device: str, latch: Latches
) -> None:
    # The host waits for the number that the composite kernel reads, and where
    # written tensors overlap, for the CPU's kernel to judge.
    waits = name in ("add tensor", "same tensor twice")
    hold = latch if held and not waits else int
    assert versions(FOREACH[name], device, hold) == versions(FOREACH[name], "cpu")


def test_foreach_in_inference_mode_is_that_of_the_cpu(device: str) -> None:
    def run(where: str) -> list[object]:
        with torch.inference_mode():
            x = [torch.ones(3, device=where)]
            torch._foreach_add_(x, 1.0)
        seen: list[object] = [x[0].cpu().clone()]
        try:
            torch._foreach_add_(x, 1.0)
        except RuntimeError as error:
            seen.append(type(error))
        seen.append(x[0].cpu().clone())
        return seen

    mine, expected = run(device), run("cpu")
    assert len(mine) == len(expected)
    for one, other in zip(mine, expected, strict=True):
        same = torch.equal(one, other) if isinstance(other, Tensor) else one == other
        assert same


@pytest.mark.parametrize("foreach", [False, True])
def test_step_between_forward_and_backward_is_refused(
    foreach: bool, device: str
) -> None:
    for where in ("cpu", device):
        w = torch.ones(3, device=where, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.1, foreach=foreach)
        w.sum().backward()
        loss = (w * w).sum()
        optimizer.step()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()
