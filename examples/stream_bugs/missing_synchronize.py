# SPDX-License-Identifier: BSD-3-Clause
"""The host reads pinned memory before the copy to it is done."""

from __future__ import annotations

import torch
from slow_device import slow_device
from torch.openreg import sanitizer


# [docs: program]
def wrong(x: torch.Tensor) -> float:
    """Returns the mean of the squares without waiting for the copy."""
    host = torch.zeros(x.shape, pin_memory=True)
    host.copy_(x * x, non_blocking=True)
    return host.mean().item()


def right(x: torch.Tensor) -> float:
    """Waits first."""
    host = torch.zeros(x.shape, pin_memory=True)
    host.copy_(x * x, non_blocking=True)
    torch.accelerator.synchronize()
    return host.mean().item()


# [docs: end]


def main() -> None:
    """Runs both on a slow device, and the wrong one with the sanitizer."""
    x = torch.full((100,), 3.0, device="openreg")
    right(x)  # the first call of an operator waits for the device
    for function in (wrong, right):
        with slow_device():
            print(f"{function.__name__}: {function(x)}")
    try:
        with sanitizer.enabled():
            wrong(x)
    except sanitizer.UnsynchronizedAccessError as error:
        print(error)


if __name__ == "__main__":
    main()
