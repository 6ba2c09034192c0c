# SPDX-License-Identifier: BSD-3-Clause
"""Operators do not wait for a busy stream, not even in their first call."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
import torch

from openreg_conformance.checks.sweep import SWEPT
from support.programs import run

from .waits import NO_OPERATOR, WAITS, has_tag, reason_to_wait

pytestmark = pytest.mark.timeout(900, method="thread")

LISTED = set().union(*WAITS.values())


def test_first_calls_wait_for_listed_reasons() -> None:
    # In a separate process, because calls of other tests are cached.
    folder = Path(__file__).parent
    ended = run(
        *(sys.executable, "-m", f"{folder.name}.first_calls"),
        environment=os.environ | {"OPENREG_INLINE_BYTES": "0"},
        folder=folder.parent,
        seconds=850,
    )
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    begun = [line["begun"] for line in lines if "begun" in line]
    assert ended.returncode == 0, f"in {begun[-1:]}: {ended.stderr[-3000:]}"
    assert begun == [op.full_name for op in SWEPT]
    waited, problems = set(), []
    for found in lines:
        if "begun" in found:
            continue
        problem = found["problem"]
        waited.add(found["waits"])
        if found["waits"] and not reason_to_wait(found["waits"]):
            problem = f"{found['waits']} waits"
        if problem is not None:
            problems.append(f"{found['case']}, {found['part']}: {problem}")
    assert problems == []
    assert waited >= LISTED


@pytest.mark.parametrize("name", sorted(LISTED - {NO_OPERATOR}))
def test_listed_operator_has_no_tag_that_explains_its_wait(name: str) -> None:
    assert torch._C._dispatch_has_kernel(name)
    assert not has_tag(name)
