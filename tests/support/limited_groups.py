# SPDX-License-Identifier: BSD-3-Clause
"""Groups of which calls fail soon."""

from __future__ import annotations

import datetime

import torch
import torch.distributed as dist

from openreg_distributed import Options


def begin(seconds: float, share_memory: bool = True) -> None:
    """Makes the default group, whose calls may take so long, and does a first one."""
    dist.init_process_group(
        "occl",
        timeout=datetime.timedelta(seconds=seconds),
        pg_options=Options(share_memory=share_memory),
    )
    dist.all_reduce(torch.ones(4, device="openreg"))
    torch.accelerator.synchronize()
