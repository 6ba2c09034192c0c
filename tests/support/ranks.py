# SPDX-License-Identifier: BSD-3-Clause
"""Ranks of the tests: forked off a process that has imported PyTorch.

Otherwise each rank of each test would import it. User programs start interpreters, and
so do the tests of ``run_ranks`` and of examples.

The default group has gloo for CPU tensors, which many tests use for comparison.
"""

from __future__ import annotations

from functools import partial

from torch_openreg import testing

_BOTH = "cpu:gloo,openreg:occl"

run_ranks = partial(testing.run_ranks, backend=_BOTH, start_method="forkserver")
run_each_rank = partial(testing.run_each_rank, backend=_BOTH, start_method="forkserver")
