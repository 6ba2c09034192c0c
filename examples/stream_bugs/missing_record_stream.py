# SPDX-License-Identifier: BSD-3-Clause
"""A missing record_stream: memory is reused while another stream still reads it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from slow_device import slow_device
from torch.openreg import sanitizer


# [docs: program]
def wrong(batches: Sequence[torch.Tensor], side: torch.Stream) -> float:
    """Prepares batches on one stream and sums them on the other."""
    main = torch.accelerator.current_stream()
    total = torch.zeros_like(batches[0])
    for batch in batches:
        with side:
            x = batch * batch
        main.wait_stream(side)
        total += x
    torch.accelerator.synchronize()
    return total.sum().item()


def right(batches: Sequence[torch.Tensor], side: torch.Stream) -> float:
    """Registers the use on the other stream with the allocator."""
    main = torch.accelerator.current_stream()
    total = torch.zeros_like(batches[0])
    for batch in batches:
        with side:
            x = batch * batch
        main.wait_stream(side)
        x.record_stream(main)
        total += x
    torch.accelerator.synchronize()
    return total.sum().item()


# [docs: end]


def main() -> None:
    """Runs both on a slow device, and the wrong one with the sanitizer."""
    batches = [torch.full((10,), float(n), device="openreg") for n in range(1, 5)]
    side = torch.Stream("openreg")
    right(batches, side)  # the first call of an operator waits for the device
    for function in (wrong, right):
        with slow_device():
            print(f"{function.__name__}: {function(batches, side)}")
    try:
        with sanitizer.enabled():
            wrong(batches, side)
    except sanitizer.UseAfterFreeError as error:
        print(error)


if __name__ == "__main__":
    main()
