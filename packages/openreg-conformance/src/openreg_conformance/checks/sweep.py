# SPDX-License-Identifier: BSD-3-Clause
"""What the sweeps over the whole database take: one dtype, a few samples of each."""

from __future__ import annotations

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from .samples import OPERATORS, case_name, choose, samples, sorted_dtypes

# Those of the database that the CPU has no dtype for are other devices' alone.
SWEPT = [op for op in OPERATORS if op.dtypes]


def swept_dtype(op: OpInfo) -> torch.dtype:
    """float32, or what an operator takes instead of it."""
    if torch.float32 in op.dtypes:
        return torch.float32
    return choose(op.full_name, sorted_dtypes(op.dtypes), 1)[0]


def sampled(
    op: OpInfo, *, whole: bool, count: int = 3
) -> list[tuple[int, SampleInput]]:
    """Makes samples of an operator on the CPU, each with its number.

    Args:
        op: The operator.
        whole: Whether to make all samples.
        count: How many to make otherwise, at most 3.
    """
    made = samples(op, torch.strided, swept_dtype(op), whole)
    return made if whole else made[:count]


def sweep_name(op: OpInfo) -> str:
    """Names a case of a sweep."""
    return case_name(op, torch.strided, swept_dtype(op))
