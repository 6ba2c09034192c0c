# SPDX-License-Identifier: BSD-3-Clause
"""Every example of the guide runs and prints the documented output."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.isolation import marked
from support.programs import ROOT, Program

DOCS = ROOT / "docs"
EXAMPLES = sorted((DOCS / "examples").glob("*.py"))


DIFFERENCES = {
    "address_space": "kernels",
    "ahead_of_time": "inductor",
    "compiled": "inductor",
    "custom_operator": "operators",
    "graph_memory": "graphs",
    "graph_refusals": "graphs",
    "graphs": "graphs",
    "ranks": "occl",
    "shared_tensor": "shared memory",  # waits forever without it
    "two_processes": "shared memory",
}


@pytest.mark.parametrize(
    "path",
    marked(EXAMPLES, DIFFERENCES, lambda path: path.stem, run=False),
    ids=lambda path: path.stem,
)
def test_example_prints_the_documented_output(
    program: Program, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = path.read_text(encoding="utf-8")
    if "OPENREG_ISOLATION" in source:  # shows the default
        monkeypatch.delenv("OPENREG_ISOLATION", raising=False)
    variables = re.findall(r"^# environment: (.*)$", source, re.MULTILINE)
    environment = dict(
        variable.split("=", 1) for line in variables for variable in line.split()
    )
    said = re.findall(r"^ *# prints: (.*)$", source, re.MULTILINE)
    assert said, "an example must document its output"
    result = program(path, **environment)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == said


def test_every_example_is_on_a_page() -> None:
    shown = re.compile(r"^<!-- quote: (\S+)|\]\((\S+\.py)\)", re.MULTILINE)
    found = {
        (page.parent / (quoted or linked)).resolve()
        for page in DOCS.rglob("*.md")
        for quoted, linked in shown.findall(page.read_text(encoding="utf-8"))
    }
    files = sorted((DOCS / "examples").rglob("*.py"))
    missing = [path.name for path in files if path not in found]
    assert files
    assert missing == []
