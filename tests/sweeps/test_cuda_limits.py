# SPDX-License-Identifier: BSD-3-Clause
"""With OPENREG_CUDA_LIMITS=1, PyTorch's database runs with the dtypes of CUDA."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from support.programs import run, variables

# Entries of the database that only the CPU supports and the limits do not refuse.
NOT_LIMITED = {
    ("norm", "complex32"): "what CUDA says was not found in its sources",
    ("norm.inf", "complex32"): "as norm",
    ("torch._scaled_mm", "float8_e4m3fnuz"): "depends on the GPU",
    ("torch._scaled_mm", "float8_e5m2"): "depends on the GPU",
    ("torch._scaled_mm", "float8_e5m2fnuz"): "depends on the GPU",
    ("torch._scaled_mm_v2", "float8_e4m3fnuz"): "depends on the GPU",
    ("torch._scaled_mm_v2", "float8_e5m2"): "depends on the GPU",
    ("torch._scaled_mm_v2", "float8_e5m2fnuz"): "depends on the GPU",
}
Cases = dict[tuple[str, str], dict[str, Any]]


@pytest.fixture(scope="module")
def cases() -> Cases:
    """Runs the operators and dtypes."""
    result = run(
        *(sys.executable, Path(__file__).with_name("cuda_limits.py")),
        environment=variables(OPENREG_CUDA_LIMITS="1", OMP_NUM_THREADS="1"),
        seconds=1200,
    )
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout.splitlines()[-1])
    return {(case["operator"], case["dtype"]): case for case in found}


@pytest.mark.slow
@pytest.mark.timeout(1300)
def test_every_dtype_that_cuda_has_not_is_refused(cases: Cases) -> None:
    expected = {key for key, case in cases.items() if not case["on_cuda"]}
    refused = {key for key in expected if cases[key]["refused"]}
    assert expected - refused == set(NOT_LIMITED)
    for key in refused:
        assert not cases[key]["failed"], key


@pytest.mark.slow
@pytest.mark.timeout(1300)
def test_no_dtype_that_cuda_has_is_refused(cases: Cases) -> None:
    wrong = {
        key: case["refused"]
        for key, case in cases.items()
        if case["on_cuda"] and case["refused"]
    }
    assert wrong == {}
