# SPDX-License-Identifier: BSD-3-Clause
"""The accelerator class for Lightning."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from torch_openreg.integrations.lightning import OpenRegAccelerator

COUNT = torch.openreg.device_count()


@pytest.mark.parametrize(
    ("devices", "indices"),
    [
        (1, [0]),
        ("1", [0]),
        (-1, list(range(COUNT))),
        ("auto", list(range(COUNT))),
        ([1], [1]),
        ("1, 0", [1, 0]),
    ],
)
def test_devices_are_parsed(devices: Any, indices: list[int]) -> None:
    assert OpenRegAccelerator.parse_devices(devices) == indices
    expected = [torch.device("openreg", index) for index in indices]
    assert OpenRegAccelerator.get_parallel_devices(indices) == expected


@pytest.mark.parametrize("devices", [0, -2, COUNT + 1, "many", [], [0, 0], [COUNT]])
def test_devices_that_are_not_there_are_refused(devices: Any) -> None:
    with pytest.raises(ValueError, match="OpenRegAccelerator: devices is"):
        OpenRegAccelerator.parse_devices(devices)


def test_device_is_made_current_and_others_are_refused() -> None:
    accelerator = OpenRegAccelerator()
    before = torch.openreg.current_device()
    accelerator.setup_device(torch.device("openreg", 1))
    assert torch.openreg.current_device() == 1
    torch.openreg.set_device(before)
    with pytest.raises(ValueError, match="device is cpu, and must be of the type"):
        accelerator.setup_device(torch.device("cpu"))


def test_statistics_count_memory() -> None:
    kept = torch.ones(1024, device="openreg:1")
    stats = OpenRegAccelerator().get_device_stats(kept.device)
    assert stats["allocated_bytes.all.current"] >= kept.nbytes
