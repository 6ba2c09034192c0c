# SPDX-License-Identifier: BSD-3-Clause
"""Correct training has the CPU's bits under every schedule."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from torch.openreg import sanitizer

from torch_openreg.testing import schedule

from .models import MODELS

STEPS = 3
SEEDS = 50

each_model = pytest.mark.parametrize("name", MODELS)


def trained(name: str, device: str) -> list[torch.Tensor]:
    """Trains a model, with batches from a side stream, and returns its parameters."""
    torch.manual_seed(5)
    make, shape, loss_of = MODELS[name]
    model = make()
    batches = [torch.randn(shape) for _ in range(STEPS)]
    torch.manual_seed(6)  # the CPU and the devices now draw the same numbers
    model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    losses = []
    if device != "cpu":
        side, main = torch.Stream(device), torch.accelerator.current_stream()
    for batch in batches:
        x = batch
        if device != "cpu":
            pinned = batch.pin_memory()
            with side:
                x = pinned.to(device, non_blocking=True)
            main.wait_stream(side)
            x.record_stream(main)
        optimizer.zero_grad()
        loss = loss_of(model, x)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.detach())
    results = [*losses, *(each.detach() for each in model.parameters())]
    return [each.cpu() for each in results]


@cache
def expected(name: str) -> list[torch.Tensor]:
    """Returns the results of the CPU."""
    return trained(name, "cpu")


def check(name: str) -> None:
    for got, want in zip(trained(name, "openreg"), expected(name), strict=True):
        assert got.equal(want)


def test_there_are_twenty_models() -> None:
    assert len(MODELS) == 20


@each_model
def test_model_has_the_bits_of_the_cpu_in_the_default_order(name: str) -> None:
    check(name)


@each_model
def test_model_has_the_bits_of_the_cpu_if_all_work_is_late(name: str) -> None:
    with schedule("lazy"):
        check(name)


@each_model
def test_model_has_the_bits_of_the_cpu_in_a_random_order(name: str) -> None:
    with schedule("random:0"):
        check(name)


@each_model
def test_sanitizer_does_not_report_the_model(name: str) -> None:
    with sanitizer.enabled():
        check(name)


@pytest.mark.slow
@pytest.mark.timeout(600)
@each_model
def test_model_has_the_bits_of_the_cpu_in_fifty_random_orders(name: str) -> None:
    for seed in range(SEEDS):
        with schedule(f"random:{seed}"):
            check(name)
