# SPDX-License-Identifier: BSD-3-Clause
"""FakeTensorMode says of the device's results what they look like."""

from __future__ import annotations

import pytest
from torch.testing._internal.opinfo.core import OpInfo

from .fake import check_fake
from .sampling import SWEPT, sampled, sweep_name
from .tally import Tally, quiet

pytestmark = pytest.mark.timeout(600, method="thread")


@pytest.mark.parametrize("op", SWEPT, ids=sweep_name)
def test_fake_metadata_are_those_of_real_results(
    op: OpInfo, whole: bool, tally: Tally
) -> None:
    with quiet():
        for i, sample in sampled(op, whole=whole):
            check_fake(tally, f"sample {i}", op, sample)
