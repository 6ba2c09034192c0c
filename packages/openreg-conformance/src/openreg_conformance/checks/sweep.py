# SPDX-License-Identifier: BSD-3-Clause
"""The selection for sweeps over the database: one dtype and a few samples each."""

from __future__ import annotations

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from .samples import OPERATORS, case_name, choose, samples, sorted_dtypes

# Entries of the database without a CPU dtype are only for other devices.
SWEPT = [op for op in OPERATORS if op.dtypes]


def swept_dtype(op: OpInfo) -> torch.dtype:
    """Returns float32, or another dtype if an operator does not support it."""
    if torch.float32 in op.dtypes:
        return torch.float32
    return choose(op.full_name, sorted_dtypes(op.dtypes), 1)[0]


def sampled(
    op: OpInfo, *, whole: bool, count: int = 3
) -> list[tuple[int, SampleInput]]:
    """Yields samples of an operator on the CPU, with their numbers.

    Args:
        op: The operator.
        whole: Whether to yield all samples.
        count: The number of samples otherwise, at most 3.
    """
    made = samples(op, torch.strided, swept_dtype(op), whole)
    return made if whole else made[:count]


def sweep_name(op: OpInfo) -> str:
    """Returns the name of a sweep's case."""
    return case_name(op, torch.strided, swept_dtype(op))
