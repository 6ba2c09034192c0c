# SPDX-License-Identifier: BSD-3-Clause
"""benchmarks/collectives.py runs, and compares each case with gloo and a memcpy."""

from __future__ import annotations

import json
import sys

import pytest

from support.programs import ROOT, run

pytestmark = pytest.mark.differs_in_process("occl", run=False)

CASES = ["all_reduce 1 KiB", "all_reduce, wait 1 KiB", "all_gather 1 MiB"]
MORE = [
    *("broadcast 1 MiB", "reduce_scatter 1 KiB", "all_to_all 1 KiB"),
    *("round trip 1 MiB", "DDP step GPT"),
]


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_quick_run_prints_ratios_for_every_row(tmp_path):
    report = tmp_path / "collectives.json"
    command = (sys.executable, "benchmarks/collectives.py", "--quick", "--json", report)
    ended = run(*command, "--case", *CASES, *MORE, folder=ROOT, seconds=100)
    assert ended.returncode == 0, ended.stderr
    content = json.loads(report.read_text())
    lines = ended.stdout.splitlines()[2:]
    for printed, row in zip(lines, content["rows"], strict=True):
        assert printed.startswith(row["name"])
        low, middle, high = row["by_gloo"]
        assert 0 < low <= middle <= high
        assert f"{middle:.2f} (" in printed
        assert row["gloo_us"] > 0
        assert row["occl_us"] > 0
        for side in ("memcpy_us", "over_gloo_us"):
            assert (row[side] is None) == (row["name"] == "DDP step GPT")
    assert [row["name"] for row in content["rows"]] == CASES + MORE


def test_wrong_case_is_refused():
    command = (sys.executable, "benchmarks/collectives.py", "--case", "all_reduce 1 GB")
    ended = run(*command, folder=ROOT)
    assert ended.returncode == 2
    assert "invalid choice" in ended.stderr
