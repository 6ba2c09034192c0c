# SPDX-License-Identifier: BSD-3-Clause
"""openreg-conformance judges CUDA devices by the rules of CUDA."""

from __future__ import annotations

import sys

import pytest

from support.programs import run, variables


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("case", "outcome"),
    [
        ("semantics/attributes_of_devices_agree", "passed"),
        # Only a backend of PrivateUse1 needs this function.
        ("autocast/module_lists_dtypes_of_autocast", "skipped"),
    ],
)
def test_the_kit_expects_what_cuda_does(case: str, outcome: str) -> None:
    suite = case.partition("/")[0]
    kit = (
        sys.executable,
        "-W",
        "ignore:CUDA is simulated",
        "-m",
        "openreg_conformance",
    )
    ended = run(
        *(*kit, "run", "--device", "cuda", "--suite", suite, "--case", f"{case}*"),
        environment=variables(OPENREG_DEVICE="cuda", OMP_NUM_THREADS="1"),
        seconds=280,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"1 {outcome}" in ended.stdout, ended.stdout
