# SPDX-License-Identifier: BSD-3-Clause
"""Tests of the tiny library on the CPU and on simulated devices."""

from __future__ import annotations

import copy

import pytest
import torch
from tinytrain import Trainer
from torch import Tensor, nn

from torch_openreg.testing import assert_no_host_sync, assert_no_leak, inject_failure


@pytest.fixture
def model() -> nn.Module:
    """Returns a small model with fixed weights."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))


@pytest.fixture
def data() -> tuple[Tensor, Tensor]:
    """Returns a batch and its targets on the CPU, as from a data loader."""
    torch.manual_seed(1)
    return torch.randn(16, 4), torch.randn(16, 2)


def test_training_lowers_the_loss(model, data):
    trainer = Trainer(model)
    losses = []
    for _ in range(20):
        trainer.step(*data)
        losses.append(trainer.mean_loss())
    assert losses[-1] < losses[0]


# [docs: numbers]
def test_training_matches_the_cpu(model, data, openreg_device):
    on_cpu = Trainer(copy.deepcopy(model))
    on_device = Trainer(model, openreg_device)
    for _ in range(3):
        on_cpu.step(*data)
        on_device.step(*data)
    assert on_device.mean_loss() == pytest.approx(on_cpu.mean_loss())


# [docs: end]
# [docs: devices]
def test_each_device_trains(model, data, openreg_devices):
    for device in openreg_devices:
        trainer = Trainer(copy.deepcopy(model), device)
        trainer.step(*data)
        assert {p.device for p in trainer.model.parameters()} == {device}


# [docs: end]
# [docs: host-sync]
def test_step_does_not_wait_for_the_device(model, data, openreg_device):
    trainer = Trainer(model, openreg_device)
    with assert_no_host_sync():
        trainer.step(*data)


# [docs: end]
# [docs: leak]
def test_steps_leak_no_memory(model, data, openreg_device):
    trainer = Trainer(model, openreg_device)
    for _ in range(2):  # allocate gradients and losses, which stay in use
        trainer.step(*data)
    with assert_no_leak():
        trainer.step(*data)
        trainer.step(*data)


# [docs: end]
# [docs: memory]
def test_model_that_does_not_fit_is_reported(openreg_device, openreg_memory_limit):
    openreg_memory_limit(8 * 2**20)
    with pytest.raises(torch.OutOfMemoryError):
        Trainer(nn.Linear(2048, 2048), openreg_device)


# [docs: end]
# [docs: failure]
def test_failed_step_can_be_repeated(model, data, openreg_device):
    trainer = Trainer(model, openreg_device)
    with (
        inject_failure("launch", first=3),
        pytest.raises(RuntimeError, match="injected failure"),
    ):
        trainer.step(*data)
    trainer.step(*data)
    assert len(trainer.losses) == 1


# [docs: end]
