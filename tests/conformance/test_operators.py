# SPDX-License-Identifier: BSD-3-Clause
"""Every operator of PyTorch's database does on openreg what it does on the CPU."""

from __future__ import annotations

import pytest
import torch
from torch.testing._internal.opinfo.core import OpInfo

from openreg_conformance.checks.operators import check_errors, check_sample
from openreg_conformance.checks.samples import (
    OPERATORS,
    case_name,
    operator_cases,
    samples,
)
from openreg_conformance.checks.tally import Tally, quiet

from .conftest import is_whole

pytestmark = pytest.mark.timeout(600, method="thread")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "dtype" in metafunc.fixturenames:
        cases = list(operator_cases(is_whole(metafunc.config)))
        names = [case_name(*case) for case in cases]
        metafunc.parametrize(("op", "layout", "dtype"), cases, ids=names)


def test_operator_agrees_with_the_cpu(
    op: OpInfo, layout: torch.layout, dtype: torch.dtype, whole: bool, tally: Tally
) -> None:
    with quiet():
        made = samples(op, layout, dtype, whole)
    for i, sample in made:
        with quiet():
            check_sample(tally, f"sample {i}", op, dtype, sample)


@pytest.mark.parametrize(
    "op",
    [op for op in OPERATORS if op.error_inputs_func is not None],
    ids=lambda op: f"{op.full_name}-error",
)
def test_operator_refuses_what_the_cpu_refuses(op: OpInfo, tally: Tally) -> None:
    with quiet():
        check_errors(tally, op)
