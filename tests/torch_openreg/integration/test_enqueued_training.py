# SPDX-License-Identifier: BSD-3-Clause
"""A training step of a small GPT is enqueued: the host waits only to read the loss."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from types import ModuleType

import pytest
import torch
from torch import Tensor, nn

from support.latches import Latches
from support.programs import Load

Build = Callable[..., torch.optim.Optimizer]
Step = Callable[[], Tensor]

OPTIMIZERS: dict[str, Build] = {
    "AdamW foreach": partial(torch.optim.AdamW, foreach=True),
    "AdamW fused": partial(torch.optim.AdamW, fused=True),
    "AdamW one by one": partial(torch.optim.AdamW, foreach=False),
    "SGD": torch.optim.SGD,
    "SGD fused": partial(torch.optim.SGD, fused=True),
}


@pytest.fixture
def models(load_program: Load) -> ModuleType:
    return load_program("benchmarks/models.py")


def prepare(models: ModuleType, build: Build, device: str) -> tuple[nn.Module, Step]:
    torch.manual_seed(0)
    model: nn.Module = models.GPT().to(device)
    optimizer = build(model.parameters(), lr=1e-3)
    text = torch.randint(64, (8, 33)).to(device)

    def step() -> Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(text[:, :-1]), text[:, 1:])
        loss.backward()
        optimizer.step()
        return loss.detach()

    return model, step


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_step_of_a_held_stream_is_enqueued(
    models: ModuleType, device: str, name: str, latch: Latches
) -> None:
    model, step = prepare(models, OPTIMIZERS[name], device)
    cpu_model, cpu_step = prepare(models, OPTIMIZERS[name], "cpu")
    step()  # caches the metadata of its results
    torch.accelerator.synchronize()
    held = latch()
    with torch.openreg.operator_paths() as paths:
        loss = step()
    assert held.holds, "the step has waited for the stream"
    held.release()

    # [docs: share]
    rest = {call: n for call, n in paths.calls.items() if call[1] != "enqueued"}
    share = 1 - sum(rest.values()) / paths.calls.total()
    logging.info("%s: %.1f%%, all but %s", name, 100 * share, rest)
    assert paths.calls.total() > 100
    assert share >= 0.95, rest
    # [docs: end]

    cpu_step()
    assert loss.item() == cpu_step().item()
    for ours, theirs in zip(model.parameters(), cpu_model.parameters(), strict=True):
        assert torch.equal(ours.cpu(), theirs)


def test_step_with_dropout_is_enqueued(
    models: ModuleType, device: str, latch: Latches
) -> None:
    losses = []
    for where in (device, "cpu"):
        model, step = prepare(models, torch.optim.SGD, where)
        for module in model.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.2
        torch.manual_seed(1)
        step()
        if where == "cpu":
            losses.append(step().item())
            continue
        torch.accelerator.synchronize()
        held = latch()
        loss = step()
        assert held.holds, "the step has waited for the stream"
        held.release()
        losses.append(loss.item())
    assert losses[0] == losses[1]


def test_host_waits_only_for_the_loss(
    models: ModuleType, device: str, latch: Latches
) -> None:
    _, step = prepare(models, torch.optim.SGD, device)
    first = step().item()
    held = latch()
    losses = [step() for _ in range(5)]  # the host may be several steps ahead
    assert held.holds
    held.release()
    values = [loss.item() for loss in losses]
    assert values == sorted(values, reverse=True)
    assert values[0] < first
