# SPDX-License-Identifier: BSD-3-Clause
"""Programs compiled with C++ wrappers have the CPU's results, too."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from support.programs import run, variables

FILE = Path(__file__).with_name("programs.py")
NAMES = ["pointwise", "softmax", "products", "integers", "dynamic_shapes"]


@pytest.mark.timeout(900)
def test_numbers_are_those_of_the_compiled_cpu() -> None:
    environment = variables(TORCHINDUCTOR_CPP_WRAPPER="1", OPENREG_INLINE_BYTES="0")
    ended = run(sys.executable, FILE, *NAMES, environment=environment, seconds=800)
    assert ended.returncode == 0, ended.stderr
    said = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [each["name"] for each in said] == NAMES
    for each in said:
        assert each["equal"], each
        assert each["kernels"] == ["enqueued"], each
