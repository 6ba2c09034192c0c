# SPDX-License-Identifier: BSD-3-Clause
"""Every operator counts its writes to tensors as on the CPU."""

from __future__ import annotations

import pytest
from torch.testing._internal.opinfo.core import OpInfo

from openreg_conformance.checks.sweep import SWEPT, sampled, sweep_name
from openreg_conformance.checks.tally import Tally, quiet
from openreg_conformance.checks.versions import check_versions

pytestmark = pytest.mark.timeout(600, method="thread")


@pytest.mark.parametrize("op", SWEPT, ids=sweep_name)
def test_operator_counts_writes_as_the_cpu_does(
    op: OpInfo, whole: bool, tally: Tally
) -> None:
    with quiet():
        for i, sample in sampled(op, whole=whole):
            check_versions(tally, f"sample {i}", op, sample)
