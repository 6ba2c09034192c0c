# SPDX-License-Identifier: BSD-3-Clause
"""An error in one rank while the other rank waits in a collective."""

import re

import torch.distributed as dist

from torch_openreg.testing import RanksFailedError, run_ranks


def step(rank):
    """Fails on rank 1 while rank 0 waits in a barrier."""
    if rank == 1:
        raise ValueError("an empty batch")
    dist.barrier()


if __name__ == "__main__":
    try:
        run_ranks(step, 2, seconds=50)
    except RanksFailedError as error:
        for line in str(error).splitlines():
            if re.match(r"rank \d of |    ValueError", line):
                print(re.sub(r" [\d.]+ s", " ... s", line))
# prints: rank 1 of 2 failed first, after ... s:
# prints:     ValueError: an empty batch
# prints: rank 0 of 2 failed, after ... s:
