# SPDX-License-Identifier: BSD-3-Clause
"""A test that runs on each device."""

from __future__ import annotations

import torch


def test_norm_is_one(device: torch.device) -> None:
    vector = torch.nn.functional.normalize(torch.arange(4.0, device=device), dim=0)
    assert vector.device.type == device.type
    torch.testing.assert_close(vector.norm().item(), 1.0)
