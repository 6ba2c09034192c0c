# SPDX-License-Identifier: BSD-3-Clause
"""``hunt`` runs a suite in each mode, and the plugin repeats tests under seeds."""

from __future__ import annotations

import json
import re
import shlex
import sys
import textwrap
from pathlib import Path

import pytest

from support.programs import Ended, run, variables

# Each of several runs imports torch.
pytestmark = pytest.mark.timeout(600)

SUITE = """
    import os
    import pytest
    import torch

    def copied():
        x = torch.ones(4, device="openreg")
        side = torch.Stream("openreg")
        side.wait_stream(torch.accelerator.current_stream())
        with side:
            y = x * 3
        total = y.sum().item()  # without a wait for the side stream
        torch.accelerator.synchronize()
        return total

    def test_missing_wait():
        assert copied() == 12

    @pytest.mark.openreg_schedules(8)
    def test_marked():
        assert copied() == 12

    @pytest.mark.parametrize("number", [1, 2])
    def test_right(number):
        x = torch.full((4,), float(number), device="openreg")
        assert (x + x).tolist() == [2.0 * number] * 4

    def test_hides_exhausted_memory():
        try:
            x = torch.ones(4, device="openreg")
        except torch.OutOfMemoryError:
            x = None
        assert x is not None
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A folder with a suite."""
    (tmp_path / "test_it.py").write_text(textwrap.dedent(SUITE))
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


def pytest_in(folder: Path, *options: str) -> Ended:
    """Runs the suite."""
    words = ["-m", "pytest", "-p", "no:cacheprovider", "-q", "--tb=no", *options]
    return run(sys.executable, *words, environment=variables(), folder=folder)


def hunt_in(folder: Path, *words: str) -> Ended:
    """Runs ``hunt``."""
    command = [sys.executable, "-m", "torch_openreg", "hunt", *words]
    return run(*command, environment=variables(), folder=folder, seconds=300)


def test_option_repeats_each_test_under_seeds(suite: Path) -> None:
    done = pytest_in(suite, "--openreg-schedules=3", "-k", "right")
    assert "6 passed" in done.stdout, done.stdout


def test_marker_repeats_a_test_and_the_command_repeats_its_failure(suite: Path) -> None:
    done = pytest_in(suite, "-k", "marked or right")
    assert re.search(r"test_it.py::test_marked failed under random:\d", done.stdout)
    found = re.search(r"repeat: python -m pytest (.*)", done.stdout)
    assert found, done.stdout
    again = pytest_in(suite, *shlex.split(found[1]))
    assert "1 failed" in again.stdout, again.stdout


def test_seeds_keep_parameters(suite: Path) -> None:
    done = pytest_in(suite, "--openreg-schedules=2", "--collect-only", "-k", "right")
    assert done.stdout.count("test_it.py::test_right[") == 4, done.stdout


@pytest.mark.parametrize("name", ["fast", "random:x", "random:99999999999999999999"])
def test_unknown_schedule_is_refused(suite: Path, name: str) -> None:
    done = pytest_in(suite, f"--openreg-schedule={name}")
    assert f"name is {name!r}, expected 'eager', 'lazy' or 'random:SEED'" in done.stderr
    assert done.returncode == 4


@pytest.mark.parametrize("option", ["--openreg-schedules=0", "--openreg-schedules=x"])
def test_wrong_number_of_seeds_is_refused(suite: Path, option: str) -> None:
    done = pytest_in(suite, option)
    assert "expected a whole number of seeds, at least 1" in done.stderr
    assert done.returncode == 4


def test_schedule_applies_to_each_test(suite: Path) -> None:
    done = pytest_in(suite, "--openreg-schedule=lazy")
    assert "FAILED test_it.py::test_missing_wait" in done.stdout
    assert "FAILED test_it.py::test_marked" in done.stdout
    assert "2 failed, 3 passed" in done.stdout


def test_exhausted_memory_is_injected_in_each_test(suite: Path) -> None:
    done = pytest_in(suite, "--openreg-fail-malloc=1", "-k", "right")
    assert done.stdout.count("OutOfMemoryError") == 2, done.stdout


def test_hunt_prints_the_first_failure_and_its_command(suite: Path) -> None:
    results, html = suite / "results.json", suite / "results.html"
    files = [f"--json={results}", f"--html={html}"]
    modes = ["--modes=lazy,sanitizer,malloc", "--allocations=1"]
    command = ["pytest", "-q", "-p", "no:cacheprovider", "-k", "not marked"]
    done = hunt_in(suite, *files, *modes, *command)
    assert done.returncode == 1, done.stderr
    row = re.search(r"^test_it.py::test_missing_wait +(.*)$", done.stdout, re.MULTILINE)
    assert row, done.stdout + done.stderr
    assert row[1].split() == ["ok", "FAIL", "FAIL", "memory"]
    row = re.search(r"^test_it.py::test_hides_\w+ +(.*)$", done.stdout, re.MULTILINE)
    assert row, done.stdout
    assert row[1].split() == ["ok", "ok", "ok", "FAIL"]
    assert "4 tests in 4 modes" in done.stdout
    assert "2 tests fail only in a mode, 0 in a plain run" in done.stdout

    written = json.loads(results.read_text())
    assert [run["mode"] for run in written["runs"]] == [
        *("plain", "sanitizer", "lazy", "malloc:1")
    ]
    finding, *_ = written["findings"]
    assert finding["test"] == "test_it.py::test_missing_wait"
    commands = {each["mode"]: each["command"] for each in finding["failures"]}
    words = shlex.split(commands["lazy"])[3:]
    assert "FAILED test_it.py::test_missing_wait" in pytest_in(suite, *words).stdout
    assert "test_missing_wait" in html.read_text()


def test_hunt_names_the_test_that_ends_the_process(suite: Path) -> None:
    (suite / "test_it.py").write_text("import os\ndef test_it(): os.abort()\n")
    done = hunt_in(suite, "--modes=plain", "pytest")
    assert done.returncode == 1
    assert "test_it fails in a plain run: ended the process: SIGABRT" in done.stdout


def test_hunt_names_the_test_that_exits(suite: Path) -> None:
    (suite / "test_it.py").write_text("import os\ndef test_it(): os._exit(1)\n")
    done = hunt_in(suite, "--modes=plain", "pytest")
    assert done.returncode == 1
    assert "test_it fails in a plain run: ended the process with s" in done.stdout


@pytest.mark.parametrize(
    ("words", "status"), [(["no_such_folder"], 4), (["-k", "nothing"], 5)]
)
def test_hunt_fails_if_pytest_does(suite: Path, words: list[str], status: int) -> None:
    done = hunt_in(suite, "pytest", *words)
    assert done.returncode == 1
    assert f"the whole run fails in a plain run: pytest ended with status {status}" in (
        done.stdout
    )


def test_error_that_hides_exhausted_memory_is_a_finding(suite: Path) -> None:
    source = """
        import torch

        def allocate(chains):
            try:
                torch.ones(4, device="openreg")
            except torch.OutOfMemoryError as error:
                raise ValueError("too large") from (error if chains else None)

        def test_hidden(): allocate(chains=False)
        def test_chained(): allocate(chains=True)
    """
    (suite / "test_it.py").write_text(textwrap.dedent(source))
    done = hunt_in(suite, "--modes=malloc", "--allocations=1", "pytest", "-q")
    row = re.search(r"^test_it.py::test_hidden +(.*)$", done.stdout, re.MULTILINE)
    assert row, done.stdout
    assert row[1].split() == ["ok", "FAIL"]
    assert "test_chained" not in done.stdout


def test_command_that_repeats_a_test_keeps_options() -> None:
    from torch_openreg.hunt._suite import _without_choice

    words = ["-q", __file__, "-k", "one or two", "-p", "no:cacheprovider", "--x", "4"]
    assert _without_choice(words) == ["-q", "-p", "no:cacheprovider", "--x", "4"]
    assert _without_choice([f"{__file__}::test", "-mslow", "-n", "2"]) == ["-n", "2"]


def test_hunt_ends_a_run_that_takes_too_long(suite: Path) -> None:
    source = "import time\ndef test_it(): time.sleep(300)\n"
    (suite / "test_it.py").write_text(source)
    done = hunt_in(suite, "--modes=plain", "--timeout=20", "pytest")
    assert "test_it.py::test_it fails in a plain run: did not end" in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["unittest"], "'unittest': expected pytest and its arguments"),
        ([], "expected pytest and its arguments"),
        (["--modes=fast", "pytest"], "'fast' is not one of plain, sanitizer, lazy"),
        (["--seeds=x", "pytest"], "'x' is not a whole number"),
    ],
)
def test_wrong_words_are_refused(suite: Path, words: list[str], message: str) -> None:
    done = hunt_in(suite, *words)
    assert done.returncode == 2
    assert message in done.stderr
