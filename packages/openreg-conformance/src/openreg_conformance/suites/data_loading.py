# SPDX-License-Identifier: BSD-3-Clause
"""Batches: data loaders with pinned memory and with processes."""

import torch
from torch.utils.data import DataLoader, TensorDataset, default_collate

from openreg_conformance.case import Suite

_suite = Suite(__name__)
case, cases = _suite.case, _suite.cases


def data():
    return TensorDataset(torch.arange(20.0), torch.arange(20))


@case("data_loading")
def batches_are_copied_to_the_device(device):
    """Batches of a DataLoader have the right values on the device."""
    seen = [x.to(device) for x, _ in DataLoader(data(), 6)]
    assert torch.cat(seen).cpu().equal(torch.arange(20.0))


@case("data_loading", "accelerator", subject="pin_memory")
def batches_are_pinned(device):
    """pin_memory=True gives pinned batches, which are copied without blocking."""
    total = torch.zeros((), device=device)
    for x, _ in DataLoader(data(), 6, pin_memory=True):
        assert x.is_pinned(), "the batch is not pinned"
        total += x.to(device, non_blocking=True).sum()
    assert total.item() == 190


@case("data_loading", subject="workers")
def workers_make_batches(device):
    """DataLoader workers create batches after the device was used."""
    torch.ones(1, device=device).item()
    options = {"pin_memory": True} if device != "cpu" else {}
    loader = DataLoader(data(), 6, num_workers=2, **options)
    for _ in range(2):
        seen = [x.to(device, non_blocking=True) for x, _ in loader]
        assert torch.cat(seen).cpu().equal(torch.arange(20.0))


@case("data_loading", subject="device tensors", users=0.2)
def tensors_of_the_device_are_collated(device):
    """default_collate stacks device tensors."""
    rows = [{"x": torch.full((2,), float(i), device=device), "y": i} for i in range(3)]
    batch = default_collate(rows)
    assert batch["x"].device.type == device
    assert batch["x"].tolist() == [[0, 0], [1, 1], [2, 2]]
