# SPDX-License-Identifier: BSD-3-Clause
"""Every module of PyTorch's database trains and predicts as on the CPU."""

from __future__ import annotations

import pytest
import torch
from torch.testing._internal.common_modules import ModuleInfo, module_db

from openreg_conformance.checks.modules import (
    check_module,
    check_module_errors,
    module_cases,
)
from openreg_conformance.checks.samples import short
from openreg_conformance.checks.tally import Tally, quiet

pytestmark = pytest.mark.timeout(600, method="thread")


@pytest.mark.parametrize(
    ("info", "dtype", "training"),
    [
        pytest.param(
            *case, id=f"{case[0].name}-{short(case[1])}-{('eval', 'train')[case[2]]}"
        )
        for case in module_cases()
    ],
)
def test_module_agrees_with_the_cpu(
    request: pytest.FixtureRequest,
    info: ModuleInfo,
    dtype: torch.dtype,
    training: bool,
    whole: bool,
    tally: Tally,
) -> None:
    with quiet():
        check_module(tally, request.node.name, info, dtype, training, whole=whole)


@pytest.mark.parametrize(
    "info",
    [info for info in module_db if info.module_error_inputs_func is not None],
    ids=lambda info: f"{info.name}-error",
)
def test_module_refuses_what_the_cpu_refuses(info: ModuleInfo, tally: Tally) -> None:
    check_module_errors(tally, info)
