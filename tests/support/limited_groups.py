# SPDX-License-Identifier: BSD-3-Clause
"""Process groups with short timeouts."""

from __future__ import annotations

import datetime

import torch
import torch.distributed as dist

from openreg_distributed import Options


def begin(seconds: float, share_memory: bool = True) -> None:
    """Creates the default group with this timeout, and makes a first call."""
    dist.init_process_group(
        "occl",
        timeout=datetime.timedelta(seconds=seconds),
        pg_options=Options(share_memory=share_memory),
    )
    dist.all_reduce(torch.ones(4, device="openreg"))
    torch.accelerator.synchronize()
