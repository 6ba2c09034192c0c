# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's tests of a backend, as test/distributed/test_distributed_spawn.py runs
them, with occl on openreg in place of NCCL on CUDA.

The ranks are forked, so they need not import torch: this process uses no device.
"""

from __future__ import annotations

import pytest
import torch

from distributed.upstream.expected_failures import expected_failures
from distributed.upstream.pointed_at_openreg import distributed_test

pytestmark = [
    pytest.mark.differs_in_process("occl", run=False),
    # Ignores warnings of PyTorch's tests.
    pytest.mark.filterwarnings("default"),
    pytest.mark.timeout(600),
]

suite = distributed_test()


class TestOccl(suite.TestDistBackend, suite.DistributedTest._DistTestBase):  # type: ignore[name-defined, misc]
    def setUp(self) -> None:
        super().setUp()
        fork = torch.multiprocessing.get_context("fork")
        self._start_processes(fork.Process)


def test_expected_failures_are_tests_of_the_suite() -> None:
    """Otherwise a name that PyTorch has changed would remain."""
    assert set(expected_failures()) <= set(dir(TestOccl))
