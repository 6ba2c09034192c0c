# SPDX-License-Identifier: BSD-3-Clause
"""Runs: statuses, missing devices, crashes, hangs, and resumption."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from .conftest import Command

pytestmark = pytest.mark.timeout(600)

BUGS = Path(__file__).with_name("planted_bugs.py")
QUICK = ("--suite", "rng", "--suite", "serialization")


def test_run_of_the_cpu_passes(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    done = command("run", "--device", "cpu", *QUICK, "--json", path)
    assert done.status == 0, done.output + done.errors
    report = done.report(path)
    assert {case["outcome"] for case in report["cases"]} == {"passed", "skipped"}
    assert "nothing to fix" in done.output
    assert not path.with_name("out.json.journal").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--device", "acme"], "acme cannot be used: torch does not recognize it"),
        (["--device", "cuda"], "torch.cuda.is_available() is False"),
        (["--device", "cpu:0"], "expected a type without an index: cpu"),
        (["--device", "cpu", "--import", "no_such"], "No module named 'no_such'"),
        (["--device", "hpu"], "torch has no module torch.hpu"),
        (
            ["--device", "cpu", "--suite", "rng", "--case", "rng/*", "--case", "rng/x"],
            "no case is called rng/x at the level smoke, in rng",
        ),
        (["--device", "cpu", "--workers", "0"], "workers is 0; accepted: 1"),
        (["--device", "cpu", "--timeout", "nan"], "timeout is nan; accepted: above 0"),
        (["--device", "cpu", "--timeout", "inf"], "timeout is inf; accepted: above 0"),
        (["--device", "cpu", "--advices", "-1"], "--advices is -1; accepted: 0"),
        (
            ["--device", "cpu", "--json", "/missing/out.json"],
            "the folder /missing does not exist",
        ),
        (["--device", "cpu", "--html", "/tmp"], "/tmp is a folder"),
        (
            ["--device", "cpu", "--junit", "/missing/out.xml"],
            "the folder /missing does not exist",
        ),
        (["--device", "cpu", "--resume"], "--resume needs --json"),
        (["--device", "cpu", "--level", "huge"], "invalid choice: 'huge'"),
    ],
)
def test_bad_usage_has_status_2_and_a_message(
    command: Command, arguments: list[str], words: str
) -> None:
    done = command("run", *arguments)
    assert done.status == 2
    assert words in done.errors
    assert "Traceback" not in done.errors


def test_device_that_ends_its_process_is_reported(
    command: Command, tmp_path: Path
) -> None:
    plugin = tmp_path / "ends.py"
    plugin.write_text("import os\nos.abort()\n")
    done = command("run", "--device", "cpu", "--import", plugin)
    assert done.status == 2
    assert "the process that loads it ended with SIGABRT" in done.errors


def test_device_that_only_has_a_name_gets_a_report(
    command: Command, tmp_path: Path
) -> None:
    plugin, path = tmp_path / "named.py", tmp_path / "out.json"
    plugin.write_text(
        "import torch\ntorch.utils.rename_privateuse1_backend('madeup')\n"
    )
    done = command(
        *("run", "--device", "madeup", "--import", plugin, "--json", path),
        *("--suite", "device", "--suite", "memory"),
        TORCH_DEVICE_BACKEND_AUTOLOAD="0",
    )
    assert done.status == 1, done.errors
    assert "1. the device's module in torch: device_module is missing" in done.output
    outcomes = {case["name"]: case for case in done.report(path)["cases"]}
    blocked = outcomes["memory/memory_is_pinned"]
    assert blocked["outcome"] == "blocked"
    assert "does not pass" in blocked["message"]


def test_crash_and_hang_cost_one_case_each(command: Command, tmp_path: Path) -> None:
    path, plugin = tmp_path / "out.json", tmp_path / "ends.py"
    plugin.write_text(
        "import os, time, torch\n"
        "torch.nn.functional.dropout = lambda *_, **__: os.abort()\n"
        "torch.multinomial = lambda *_, **__: time.sleep(1000)\n"
    )
    crashing = "rng/dropout_masks_forward_and_backward_alike"
    hanging, passing = "rng/same_seed_same_numbers", "rng/generator_knows_its_seed"
    names = (crashing, hanging, passing)
    done = command(
        *("run", "--device", "cpu", "--import", plugin, "--json", path),
        *("--suite", "rng", "--timeout", "10"),
        *(word for name in names for word in ("--case", name)),
    )
    assert done.status == 1, done.errors
    found = {case["name"]: case for case in done.report(path)["cases"]}
    assert found[passing]["outcome"] == "passed"
    assert found[crashing]["outcome"] == "crashed"
    assert "SIGABRT" in found[crashing]["message"]
    assert f'{crashing.partition("/")[2]}("cpu")' in found[crashing]["program"]
    assert found[hanging]["outcome"] == "hung"
    assert "within 10 s" in found[hanging]["message"]
    assert "in draws" in found[hanging]["message"], "where it hung"


def test_program_of_a_failure_fails_by_itself(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    arguments = ("--suite", "operators", "--case", "operators/addmm/float32/forward")
    plugin = ("--import", BUGS)
    done = command(
        *("run", "--device", "openreg", *arguments, *plugin, "--json", path),
        PLANTED_BUG="addmm_ignores_beta",
    )
    (case,) = done.report(path)["cases"]
    printed = command("program", path, case["name"])
    assert printed.status == 0
    assert printed.output == case["program"]
    program = tmp_path / "program.py"
    program.write_text(case["program"])
    assert "openreg_conformance" not in case["program"]
    for name, status in (("addmm_ignores_beta", 1), ("", 0)):
        ended = subprocess.run(
            [sys.executable, str(program)],
            env={**os.environ, "PYTHONPATH": str(BUGS.parent), "PLANTED_BUG": name},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == status, ended.stderr


def test_killed_run_resumes_with_the_same_result(
    command: Command, tmp_path: Path
) -> None:
    whole, path = tmp_path / "whole.json", tmp_path / "out.json"
    arguments = ("run", "--device", "cpu", *QUICK, "--json")
    expected = command(*arguments, whole).report(whole)
    journal = path.with_name("out.json.journal")
    process = subprocess.Popen(
        [sys.executable, "-m", "openreg_conformance", *arguments, str(path)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    while not journal.exists() or journal.read_text().count("\n") < 4:
        assert process.poll() is None
        time.sleep(0.001)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = journal.read_text().count("\n") - 1
    assert before < len(expected["cases"])
    other = command(
        "run", "--device", "cpu", "--suite", "rng", "--json", path, "--resume"
    )
    assert other.status == 2
    assert "a different value of suites" in other.errors
    found = command(*arguments, path, "--resume").report(path)

    def facts(report):
        return [
            {key: value for key, value in case.items() if key != "seconds"}
            for case in report["cases"]
        ]

    assert facts(found) == facts(expected)


@pytest.mark.parametrize("content", ["{", "[]\n", "3\n", '{"device": "cpu"}\n{}\n'])
def test_file_that_is_not_a_journal_is_not_resumed(
    command: Command, tmp_path: Path, content: str
) -> None:
    path = tmp_path / "out.json"
    journal = path.with_name("out.json.journal")
    journal.write_text(content)
    case = "rng/generator_knows_its_seed"
    done = command(
        *("run", "--device", "cpu", "--suite", "rng", "--case", case),
        *("--json", path, "--resume"),
    )
    if content.endswith("\n"):
        assert done.status == 2
        assert f"{journal} is not the journal of a run" in done.errors
        assert journal.read_text() == content
    else:
        assert done.status == 0, "what was cut before its first line has no results"


def start(*arguments: str | Path) -> subprocess.Popen[str]:
    # A program started in the background ignores the signal, and so do its children.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen(
            [sys.executable, "-m", "openreg_conformance", *map(str, arguments)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_a_run_that_hangs_and_locks_its_file(
    command: Command, tmp_path: Path, number: signal.Signals
) -> None:
    plugin, path = tmp_path / "hangs.py", tmp_path / "out.json"
    pid = tmp_path / "pid"
    plugin.write_text(
        "import os, pathlib, time, torch\n"
        "def hang(*args, **kwargs):\n"
        f"    pathlib.Path({str(pid)!r}).write_text(str(os.getpid()))\n"
        "    time.sleep(1000)\n"
        "torch.multinomial = hang\n"
    )
    names = ("rng/generator_knows_its_seed", "rng/same_seed_same_numbers")
    arguments = [
        *("run", "--device", "cpu", "--suite", "rng", "--import", plugin),
        *(word for name in names for word in ("--case", name)),
        *("--json", path),
    ]
    process = start(*arguments)
    while not pid.exists() or not pid.read_text():
        assert process.poll() is None
        time.sleep(0.01)
    other = command(*arguments)
    assert other.status == 2
    assert f"another run is writing {path}.journal" in other.errors
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "interrupted; run the same command with --resume to continue" in errors
    assert "Traceback" not in errors
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
    assert path.with_name("out.json.journal").exists()


def test_worker_that_is_killed_costs_one_case(command: Command, tmp_path: Path) -> None:
    plugin, path = tmp_path / "killed.py", tmp_path / "out.json"
    plugin.write_text(
        "import os, torch\n"
        "torch.multinomial = lambda *_, **__: os.kill(os.getpid(), 9)\n"
    )
    names = ("rng/generator_knows_its_seed", "rng/same_seed_same_numbers")
    done = command(
        *("run", "--device", "cpu", "--suite", "rng", "--import", plugin),
        *(word for name in names for word in ("--case", name)),
        *("--json", path),
    )
    assert done.status == 1
    found = {case["name"]: case for case in done.report(path)["cases"]}
    assert found[names[0]]["outcome"] == "passed"
    assert found[names[1]]["outcome"] == "crashed"
    assert "SIGKILL" in found[names[1]]["message"]


def test_workers_share_the_cases(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    done = command("run", "--device", "cpu", *QUICK, "--workers", "2", "--json", path)
    cases = done.report(path)["cases"]
    assert [case["name"].partition("/")[0] for case in cases] == sorted(
        case["name"].partition("/")[0] for case in cases
    )
    assert len({case["name"] for case in cases}) == len(cases)


def test_failures_that_are_expected_have_status_0(
    command: Command, tmp_path: Path
) -> None:
    plugin, known = tmp_path / "wrong.py", tmp_path / "known.toml"
    plugin.write_text("import torch\ndel torch.randperm\n")
    names = ("rng/numbers_do_not_repeat", "rng/same_seed_same_numbers")
    arguments = [
        *("run", "--device", "cpu", "--suite", "rng", "--import", plugin),
        *(word for name in names for word in ("--case", name)),
    ]
    assert command(*arguments).status == 1
    entry = '[[expected]]\ncases = ["{}"]\nreason = "there is no randperm"\n'
    known.write_text(entry.format(names[1]))
    done = command(*arguments, "--expect", known)
    assert done.status == 0, done.output + done.errors
    assert "1 failures are expected" in done.output
    known.write_text(entry.format("rng/*"))
    done = command(*arguments, "--expect", known)
    assert done.status == 1
    assert f"passes, but is expected to fail: {names[0]}" in done.output
    known.write_text(entry.format("rng/*") + "strict = false\n")
    assert command(*arguments, "--expect", known).status == 0


@pytest.mark.slow
def test_exact_run_demands_the_bits_of_the_cpu(
    command: Command, tmp_path: Path
) -> None:
    plugin, known = tmp_path / "nudges.py", tmp_path / "known.toml"
    plugin.write_text(
        "import torch\n"
        "gelu = torch.nn.functional.gelu\n"
        "def nudged(x, **options):\n"
        "    y = gelu(x, **options)\n"
        "    up = torch.full_like(y, 9)\n"
        "    return y if y.device.type == 'cpu' else torch.nextafter(y, up)\n"
        "torch.nn.functional.gelu = nudged\n"
    )
    path = tmp_path / "out.json"
    arguments = (
        *("run", "--device", "openreg", "--import", plugin, "--json", path),
        *("--suite", "operators", "--level", "sample"),
        *("--case", "operators/nn.functional.gelu/float32/forward"),
    )
    assert command(*arguments).status == 0
    done = command(*arguments, "--exact")
    assert done.status == 1
    (case,) = done.report(path)["cases"]
    assert case["check"] == "bits"
    assert "sample" in case["message"]
    assert "not bitwise equal to the CPU" in case["message"]
    program = tmp_path / "program.py"
    program.write_text(case["program"])
    ended = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, check=False
    )
    assert "AssertionError: Tensor-likes are not equal!" in ended.stderr
    entry = '[[expected]]\ncases = ["operators/*"]\nreason = "x"\ncheck = "{}"\n'
    for check, status in (("bits", 0), ("forward", 1)):
        known.write_text(entry.format(check))
        assert command(*arguments, "--exact", "--expect", known).status == status


@pytest.mark.slow
def test_exact_run_demands_the_random_numbers_of_the_cpu(
    command: Command, tmp_path: Path
) -> None:
    plugin = tmp_path / "shifts.py"
    plugin.write_text(
        "import torch\n"
        "real = torch.openreg.manual_seed_all\n"
        "torch.openreg.manual_seed_all = lambda seed: real(seed + 7)\n"
    )
    arguments = (
        *("run", "--device", "openreg", "--suite", "operators", "--level", "sample"),
        *("--case", "operators/normal/float32/forward"),
    )
    shifted = (*arguments, "--import", plugin)
    assert command(*arguments, "--exact").status == 0
    assert command(*shifted).status == 0
    done = command(*shifted, "--exact")
    assert done.status == 1
    assert "other random numbers" in done.output


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ('device = "cpu"\nlevel = "huge"', "level is 'huge'; accepted: smoke"),
        ('device = "cpu"\nsuites = ["nothing"]', "suites has 'nothing'; accepted"),
        ('device = "cpu"\nimports = "torch"', "imports is 'torch', not a list"),
        ('device = "cpu"\ntimeout = "long"', "timeout is 'long'; accepted"),
        ('device = "cpu"\nexact = 1', "exact is 1, not true or false"),
        ('device = "cpu"\nlevels = 1', "run has levels; it may have device"),
        ('level = "smoke"', "run has no device"),
    ],
)
def test_pytest_refuses_a_wrong_file(tmp_path: Path, table: str, words: str) -> None:
    (tmp_path / "conformance.toml").write_text(f"[run]\n{table}\n")
    done = run_pytest(tmp_path)
    assert done.returncode == 2
    assert words in done.stdout
    assert "Traceback" not in done.stdout


def run_pytest(folder: Path) -> subprocess.CompletedProcess[str]:
    installed = "openreg_conformance" in entry_points(group="pytest11").names
    plugin = [] if installed else ["-p", "openreg_conformance.pytest_plugin"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rf", *plugin, str(folder)],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )


def test_pytest_collects_the_cases_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text("import torch\ndel torch.randperm\n")
    (tmp_path / "conformance.toml").write_text(
        '[run]\ndevice = "cpu"\nsuites = ["rng"]\n'
        'imports = ["wrong.py"]\n'  # in the file's folder
        '[[expected]]\ncases = ["rng/*generator*"]\nreason = "x"\nstrict = false\n'
    )
    done = run_pytest(tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "AttributeError: module 'torch' has no attribute 'randperm'" in done.stdout
    last = done.stdout.strip().splitlines()[-1]
    assert "xfailed" in last
    assert "4 skipped" in last


def test_errors_of_values_may_arrive_when_results_are_read(command: Command) -> None:
    case = ("--level", "smoke", "--case", "modules/nn.Embedding/error")
    ended = command("run", "--device", "openreg", *case, OPENREG_SCHEDULE="lazy")
    assert ended.status == 0, ended.output + ended.errors
