# SPDX-License-Identifier: BSD-3-Clause
"""Every optimizer of PyTorch's database takes the steps that it takes on the CPU."""

from __future__ import annotations

import pytest
import torch
from torch.testing._internal.common_optimizers import OptimizerInfo, optim_db

from openreg_conformance.checks.optimizers import (
    check_optimizer,
    check_optimizer_errors,
    optimizer_cases,
)
from openreg_conformance.checks.samples import short
from openreg_conformance.checks.tally import Tally

pytestmark = pytest.mark.timeout(600, method="thread")


@pytest.mark.parametrize(
    ("info", "dtype"),
    [
        pytest.param(info, dtype, id=f"{info.name}-{short(dtype)}")
        for info, dtype in optimizer_cases()
    ],
)
def test_optimizer_agrees_with_the_cpu(
    info: OptimizerInfo, dtype: torch.dtype, tally: Tally
) -> None:
    check_optimizer(tally, info, dtype)


@pytest.mark.parametrize(
    "info",
    [info for info in optim_db if info.optim_error_inputs_func is not None],
    ids=lambda info: f"{info.name}-error",
)
def test_optimizer_refuses_what_the_cpu_refuses(
    info: OptimizerInfo, tally: Tally
) -> None:
    check_optimizer_errors(tally, info)
