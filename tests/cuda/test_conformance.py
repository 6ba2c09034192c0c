# SPDX-License-Identifier: BSD-3-Clause
"""openreg-conformance judges CUDA devices by the rules of CUDA."""

from __future__ import annotations

import sys

import pytest

from support.programs import run, variables


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("suite", "case", "line"),
    [
        (
            "semantics",
            "attributes_of_devices_agree",
            "all              100.0%        1 ",
        ),
        # Only a backend of PrivateUse1 needs this function.
        ("autocast", "module_lists_dtypes_of_autocast", "skipped 1: PyTorch needs it"),
    ],
)
def test_the_kit_expects_what_cuda_does(suite: str, case: str, line: str) -> None:
    quiet = ("-W", "ignore:CUDA is simulated")
    kit = (sys.executable, *quiet, "-m", "openreg_conformance")
    options = ("--device", "cuda", "--level", "sample", "--suite", suite)
    ended = run(
        *(*kit, "run", *options, "--case", f"{suite}/*{case}*"),
        environment=variables(OPENREG_DEVICE="cuda", OMP_NUM_THREADS="1"),
        seconds=280,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert line in ended.stdout, ended.stdout
