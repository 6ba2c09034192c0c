# SPDX-License-Identifier: BSD-3-Clause
"""Compiled code with random numbers: checkpoints draw the same numbers again."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

pytestmark = pytest.mark.usefixtures("fresh_compiler")

Step = Callable[[Tensor], Tensor]


def once(x: Tensor) -> Tensor:
    return checkpoint(lambda t: F.dropout(t, 0.4), x, use_reentrant=False)


def twice(x: Tensor) -> Tensor:
    """Two random operators in each of two checkpoints."""
    for _ in range(2):
        x = checkpoint(
            lambda t: F.dropout(F.dropout(t, 0.3), 0.2), x, use_reentrant=False
        )
    return x


def noise(x: Tensor) -> Tensor:
    return checkpoint(lambda t: t * torch.rand_like(t), x, use_reentrant=False)


def gradients(step: Step, device: str, seed: int) -> tuple[Tensor, Tensor]:
    """Returns the result of a step on ones, and the gradient of its sum."""
    torch.manual_seed(seed)
    x = torch.ones(1000, device=device, requires_grad=True)
    y = step(x)
    y.sum().backward()
    assert x.grad is not None
    return y.detach().cpu(), x.grad.cpu()


@pytest.mark.parametrize("step", [once, twice, noise], ids=lambda s: s.__name__)
def test_compiled_checkpoint_draws_the_same_numbers_in_backward(step: Step) -> None:
    # Each is linear in x, which is one: the gradient is the result.
    compiled = torch.compile(step, backend="aot_eager", fullgraph=True)
    first = gradients(compiled, "openreg", 1)
    assert torch.equal(*first)
    assert first[0].unique().numel() > 1
    other = gradients(compiled, "openreg", 2)
    assert torch.equal(*other)
    assert not torch.equal(first[0], other[0])


@pytest.mark.parametrize("step", [once, twice], ids=lambda s: s.__name__)
def test_same_seed_gives_the_same_compiled_checkpoint(step: Step) -> None:
    drawn = []
    for _ in range(2):
        # The seeds of the generators are drawn at the first call.
        torch.compiler.reset()
        compiled = torch.compile(step, backend="aot_eager", fullgraph=True)
        drawn += [gradients(compiled, "openreg", 3)[0]]
    assert torch.equal(*drawn)


def test_compiled_checkpoint_moves_the_generators_as_documented() -> None:
    compiled = torch.compile(once, backend="aot_eager", fullgraph=True)
    gradients(compiled, "openreg", 1)
    before = torch.openreg.get_rng_state()
    x = torch.ones(1000, device="openreg", requires_grad=True)
    results = [compiled(x) for _ in range(2)]
    # Its own generators advance, but not the default one.
    assert not torch.equal(*results)
    assert torch.equal(torch.openreg.get_rng_state(), before)


def test_checkpoint_that_is_not_compiled_draws_the_numbers_of_the_cpu() -> None:
    for step in (once, twice, noise):
        on_device = gradients(step, "openreg", 5)
        on_cpu = gradients(step, "cpu", 5)
        assert torch.equal(on_device[0], on_cpu[0])
        assert torch.equal(on_device[1], on_cpu[1])


def test_compiled_dropout_without_a_checkpoint_draws_the_numbers_of_the_cpu() -> None:
    compiled = torch.compile(F.dropout, backend="aot_eager", fullgraph=True)
    on_device = gradients(compiled, "openreg", 5)
    on_cpu = gradients(F.dropout, "cpu", 5)
    assert torch.equal(on_device[0], on_cpu[0])
    assert torch.equal(on_device[1], on_cpu[1])


def test_checkpoint_without_its_state_draws_other_numbers() -> None:
    torch.manual_seed(5)
    x = torch.ones(1000, device="openreg", requires_grad=True)
    y = checkpoint(F.dropout, x, use_reentrant=False, preserve_rng_state=False)
    y.sum().backward()
    assert not torch.equal(x.grad, y.detach())


def test_checkpoint_keeps_a_normal_that_was_drawn_in_a_pair() -> None:
    x = torch.ones(3, device="openreg", requires_grad=True)
    torch.randn(3, device="openreg")
    y = checkpoint(
        lambda t: t * torch.randn(3, device="openreg"), x, use_reentrant=False
    )
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())


def test_compiled_training_step_with_checkpoints_has_finite_matching_gradients() -> (
    None
):
    torch.manual_seed(0)
    layers = nn.ModuleList([nn.Linear(16, 16) for _ in range(3)]).to("openreg")

    def forward(x: Tensor) -> Tensor:
        for layer in layers:
            x = checkpoint(
                lambda t, f: F.dropout(f(t), 0.0), x, layer, use_reentrant=False
            )
        return x.square().sum()

    x = torch.randn(4, 16).to("openreg")
    expected = torch.autograd.grad(forward(x), list(layers.parameters()))
    compiled = torch.compile(forward, backend="aot_eager")
    found = torch.autograd.grad(compiled(x), list(layers.parameters()))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)
