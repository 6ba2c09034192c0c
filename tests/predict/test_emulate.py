# SPDX-License-Identifier: BSD-3-Clause
"""Tests of emulated devices: virtual time and memory inside of a program."""

from __future__ import annotations

import pytest
import torch

import openreg_predict

torch.set_num_threads(1)


def timed(device: str, size: int) -> float:
    """Returns the milliseconds of a product by events."""
    with openreg_predict.emulate(device, dry=True):
        x = torch.empty(size, size, device="openreg")
        begin, end = (torch.openreg.Event(enable_timing=True) for _ in range(2))
        begin.record()
        x @ x
        end.record()
        torch.openreg.synchronize()
        return float(begin.elapsed_time(end))


def test_events_show_the_time_of_the_described_device() -> None:
    slow, fast = timed("t4", 8192), timed("h100-sxm", 8192)
    flops = 2 * 8192**3
    assert flops / 8.1e12 < slow / 1e3 < 3 * flops / 8.1e12
    assert fast < slow / 4
    assert timed("t4", 8192) == slow


def test_a_tensor_that_does_not_fit_raises_the_error_of_the_device() -> None:
    with openreg_predict.emulate("t4", dry=True):
        x = torch.empty(10 * 2**30, dtype=torch.uint8, device="openreg")
        with pytest.raises(torch.OutOfMemoryError, match="T4 out of memory") as error:
            torch.empty(10 * 2**30, dtype=torch.uint8, device="openreg")
        assert "Tried to allocate 10.0 GiB" in str(error.value)
        del x
        torch.empty(10 * 2**30, dtype=torch.uint8, device="openreg")


def test_statistics_are_those_of_the_described_device() -> None:
    with openreg_predict.emulate("t4", dry=True):
        assert torch.openreg.memory_allocated() == 0
        x = torch.empty(2**30, device="openreg")
        assert torch.openreg.memory_allocated() == 2**32
        assert torch.accelerator.memory_allocated() == 2**32
        del x
        assert torch.openreg.memory_allocated() == 0
        assert torch.openreg.max_memory_allocated() == 2**32
        assert torch.openreg.memory_reserved() == 2**32
        free, total = torch.openreg.mem_get_info()
        assert total == 15 * 2**30 or total == 16 * 2**30
        assert free < total - 2**32
    assert torch.openreg.max_memory_allocated() < 2**32


def test_values_are_real_without_a_dry_run() -> None:
    with openreg_predict.emulate("t4"):
        assert torch.arange(4, device="openreg").sum().item() == 6
        assert torch.openreg.memory_reserved() == 2 * 2**20
