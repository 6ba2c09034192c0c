# SPDX-License-Identifier: BSD-3-Clause
"""DistributedDataParallel measures times on the device, as on CUDA."""

from __future__ import annotations

import time

import pytest
import torch
from torch import nn

from support.latches import Latch
from support.ranks import run_ranks

pytestmark = pytest.mark.differs_in_process("occl", run=False)

DEVICE = "openreg"
HELD = 0.3  # seconds


class Held(nn.Module):
    """A layer that a latch can block on the device."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)
        self.latch: Latch | None = None
        self.holds = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.holds:
            from openreg_runtime import Stream

            handle = torch.accelerator.current_stream().native_handle
            self.latch = Latch(Stream.from_handle(handle))
        return self.layer(x)


def times_of_the_device(rank: int) -> None:
    module = Held().to(DEVICE)
    model = nn.parallel.DistributedDataParallel(module)
    x = torch.ones(4, 8, device=DEVICE)
    for _ in range(3):
        model(x).sum().backward()
    torch.accelerator.synchronize()
    module.holds = True
    start = time.monotonic()
    model(x).sum().backward()
    on_host = time.monotonic() - start
    time.sleep(HELD)
    assert module.latch is not None
    assert module.latch.holds
    module.latch.release()
    module.holds = False
    model(x).sum().backward()  # DDP reads the times when it begins
    data = model._get_ddp_logging_data()
    # The host finishes the forward pass long before the device.
    forward = data["backward_compute_time_start"] - data["forward_compute_time_start"]
    assert 0 < forward / 1e9 < on_host
    assert data["forward_compute_time"] / 1e9 > HELD
    for name in (
        "forward_compute_time",
        "backward_compute_time",
        "backward_comm_time",
        "backward_compute_comm_overlap_time",
    ):
        assert data[name] > 0, name
        assert data[f"avg_{name}"] > 0, name


def without_a_backward_pass(rank: int) -> None:
    model = nn.parallel.DistributedDataParallel(nn.Linear(8, 8).to(DEVICE))
    for _ in range(3):
        model(torch.ones(4, 8, device=DEVICE))
    data = model._get_ddp_logging_data()
    assert data["backward_compute_time"] == 0
    assert data["forward_compute_time_start"] > 0


def both(rank: int) -> None:
    without_a_backward_pass(rank)
    times_of_the_device(rank)


def test_times_are_those_of_the_device():
    run_ranks(both, 1, backend="occl")
