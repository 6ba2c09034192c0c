# SPDX-License-Identifier: BSD-3-Clause
"""Pinned memory and the DataLoader with workers bring data to the device unchanged."""

from __future__ import annotations

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset


def test_pin_memory_keeps_the_values_and_is_seen() -> None:
    x = torch.arange(10.0)
    pinned = x.pin_memory()
    assert pinned.is_pinned()
    assert not x.is_pinned()
    assert torch.equal(pinned, x)
    assert pinned[3:].is_pinned()


def test_pinned_copy_without_blocking_arrives() -> None:
    pinned = torch.arange(100_000.0).pin_memory()
    there = pinned.to("openreg", non_blocking=True)
    back = torch.empty(100_000, pin_memory=True)
    back.copy_(there + 1, non_blocking=True)
    torch.openreg.synchronize()
    assert torch.equal(back, pinned + 1)


@pytest.mark.parametrize("workers", [0, 2])
def test_loader_pins_every_batch(workers: int) -> None:
    torch.openreg.init()
    data = TensorDataset(torch.arange(40.0).view(20, 2), torch.arange(20))
    loader = DataLoader(data, batch_size=8, num_workers=workers, pin_memory=True)
    rows, labels = [], []
    for x, y in loader:
        assert x.is_pinned()
        assert y.is_pinned()
        rows.append(x.to("openreg", non_blocking=True))
        labels.append(y.openreg(non_blocking=True))
    assert torch.equal(torch.cat(rows).cpu(), data.tensors[0])
    assert torch.equal(torch.cat(labels).cpu(), data.tensors[1])


def test_loader_pins_for_the_current_device() -> None:
    with torch.openreg.device(1):
        loader = DataLoader(TensorDataset(torch.ones(4, 2)), 2, pin_memory=True)
        batches = [x.openreg() for (x,) in loader]
    assert [x.get_device() for x in batches] == [1, 1]
