# SPDX-License-Identifier: BSD-3-Clause
"""``tools/upstream_streams.py`` counts the failures of PyTorch's tests of streams."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.programs import Load

Run = Callable[..., tuple[int, list[str]]]

# Each test fails under the orders whose names begin with a prefix.
TESTS = """
import unittest
from openreg_runtime._C import get_schedule

class Tests(unittest.TestCase):
    def fail_under(self, prefix, error):
        if get_schedule().startswith(prefix):
            self.fail(error)
    def test_stream_broken(self):
        self.fail_under("", "broken")
    def test_events(self):
        self.fail_under("random", "True is not false")
    def test_events_wait(self):
        self.fail_under("random", "False is not true")
    def test_events_multi_gpu_query(self):
        self.fail_under("lazy", "True is not false")
    def test_stream_late(self):
        self.fail_under("random", "True is not false")
    def test_stream_passes(self):
        pass
    @unittest.skip("always")
    def test_stream_skipped(self):
        pass
    def test_other(self):
        self.fail("neither word is in the name")
"""


@pytest.fixture
def run_tool(
    load_tool: Load,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Run]:
    """Runs the tool on the tests whose names contain none of some parts.

    Returns the status and the printed lines, without the times.
    """
    files = "test_cuda", "test_cuda_multigpu"
    for file, source in zip(files, (TESTS, ""), strict=True):
        (tmp_path / f"{file}.py").write_text(source)
    tool = load_tool("upstream_streams")

    def start(*left_out: str) -> tuple[int, list[str]]:
        command = ["tool", str(tmp_path), "--seeds", "1", "--leave-out", *left_out]
        monkeypatch.setattr(sys, "argv", command)
        monkeypatch.setattr(sys, "path", [*sys.path])
        status = tool.main()
        lines = capsys.readouterr().out.splitlines()
        return status, [re.sub(r", \d+ s$", "", line) for line in lines]

    yield start
    for file in files:
        sys.modules.pop(file, None)


def counts(order: str, *numbers: int) -> str:
    """Returns the line of an order."""
    named = zip(
        numbers, ("passed", "skipped", "expected to fail", "failed"), strict=True
    )
    return f"{order}: " + ", ".join(f"{number} {name}" for number, name in named)


def test_failures_without_a_known_reason_are_named_and_counted(run_tool: Run) -> None:
    status, lines = run_tool()
    assert lines == [
        "eager: test_cuda.Tests.test_stream_broken: AssertionError: broken",
        counts("eager", 5, 1, 0, 1),
        "lazy: test_cuda.Tests.test_events_multi_gpu_query: "
        "AssertionError: True is not false",
        counts("lazy", 4, 1, 0, 1),
        "random:0: test_cuda.Tests.test_events: "
        "expects that a sleep still runs at a query",
        "random:0: test_cuda.Tests.test_events_wait: AssertionError: False is not true",
        "random:0: test_cuda.Tests.test_stream_late: AssertionError: True is not false",
        counts("random:0", 2, 1, 1, 2),
        "4 unexpected failures",
    ]
    assert status == 1


def test_failure_in_the_default_order_alone_is_an_error(run_tool: Run) -> None:
    status, lines = run_tool("events", "late")
    assert lines[-1] == "1 unexpected failures"
    assert status == 1


def test_failure_with_a_known_reason_under_a_seed_is_no_error(run_tool: Run) -> None:
    status, lines = run_tool("broken", "events_", "late")
    assert lines[-2:] == [counts("random:0", 1, 1, 1, 0), "0 unexpected failures"]
    assert status == 0


def test_run_without_a_passed_test_is_an_error(run_tool: Run) -> None:
    status, lines = run_tool("broken", "events", "late", "passes")
    assert lines[-1] == "0 unexpected failures, no test passed"
    assert status == 1
