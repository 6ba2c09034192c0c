# SPDX-License-Identifier: BSD-3-Clause
"""The benchmark of compiled programs runs, and prints and writes its ratios."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from support.programs import ROOT, run, variables


@pytest.mark.timeout(300)
def test_quick_run_prints_ratios_and_writes_them(tmp_path: Path) -> None:
    report = tmp_path / "compiled.json"
    command = (sys.executable, "benchmarks/compiled.py", "--quick")
    options = ("--case", "chain 1 Ki", "step tiny MLP", "--json", report)
    done = run(*command, *options, folder=ROOT, environment=variables(), seconds=280)
    assert done.returncode == 0, done.stderr
    rows = json.loads(report.read_text())["rows"]
    assert [row["name"] for row in rows] == ["chain 1 Ki", "step tiny MLP"]
    for row, line in zip(rows, done.stdout.splitlines()[-2:], strict=True):
        low, middle, high = row["ratio"]
        assert 0 < low <= middle <= high
        assert line.startswith(row["name"])
        assert f"{middle:.2f} ({low:.2f}-{high:.2f})" in line
        assert row["eager_us"] > 0
