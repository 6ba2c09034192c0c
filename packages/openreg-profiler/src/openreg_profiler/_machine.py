# SPDX-License-Identifier: BSD-3-Clause
"""The peak rates of this machine's CPU, which simulates the device."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import torch

_SIZE = 512  # of the matrices
_BYTES = 1 << 25  # of the copy, more than caches hold
_TRIES = 5


class Machine(NamedTuple):
    """Measured rates.

    Attributes:
        flops: Floating-point operations per second of a float32 matrix product.
        bandwidth: Bytes per second that a copy reads and writes.
    """

    flops: float
    bandwidth: float


def _best(work: Callable[[], object]) -> float:
    """Returns the seconds of the fastest of several runs."""
    work()
    times = []
    for _ in range(_TRIES):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return min(times)


@lru_cache(maxsize=1)
def measure() -> Machine:
    """Measures this machine, once per process, with PyTorch's number of threads."""
    x = torch.rand(_SIZE, _SIZE)
    product = torch.empty_like(x)
    seconds = _best(lambda: torch.mm(x, x, out=product))
    source = torch.zeros(_BYTES, dtype=torch.uint8)
    target = torch.zeros_like(source)
    copied = _best(lambda: target.copy_(source))
    return Machine(2 * _SIZE**3 / seconds, 2 * _BYTES / copied)
