# SPDX-License-Identifier: BSD-3-Clause
"""The benchmarks run, print a ratio for each row and write their numbers."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from support.programs import ROOT, Load, run, variables

pytestmark = pytest.mark.slow


@pytest.fixture
def eager(load_program: Load) -> ModuleType:
    return load_program("benchmarks/eager.py")


@pytest.mark.parametrize("name", ["eager", "training"])
def test_quick_run_prints_a_ratio_for_every_row(
    name: str,
    load_program: Load,
    device: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    program = load_program(f"benchmarks/{name}.py")
    report = tmp_path / f"{name}.json"
    assert program.main(["--device", device, "--quick", "--json", str(report)]) == 0
    printed = capsys.readouterr().out
    assert "peer column left out" in printed
    content = json.loads(report.read_text())
    assert content["machine"]["threads"] == "1"
    rows = {row["name"]: row for row in content["rows"]}
    assert list(rows) == list(program.CASES)
    for name, row in rows.items():
        line = next(line for line in printed.splitlines() if line.startswith(name))
        assert f"{row['ratio']:.2f}" in line
        assert row["device"] == device
        assert row["low"] <= row["ratio"] <= row["high"]
        assert row["cpu_us"] > 0
        assert row["device_us"] > 0


def test_device_list_gives_one_table_for_each(
    eager: ModuleType, device: str, capsys: pytest.CaptureFixture[str]
) -> None:
    devices = [f"{device}:0", f"{device}:1", "cpu"]
    eager.main(["--device", *devices, "--case", "item", "add 8", "--quick"])
    printed = capsys.readouterr().out
    for name in devices:
        assert printed.count(f"{name} us") >= 1
    assert printed.count("\nitem ") == 3
    assert printed.count("\nadd 8 ") == 3


def test_isolation_gives_ratios_and_starts() -> None:
    program = ROOT / "benchmarks" / "isolation.py"
    options = "--quick", "--case", "add 8", "start"
    done = run(sys.executable, program, *options, environment=variables())
    assert done.returncode == 0, done.stderr
    heads, row, starts, *rows = done.stdout.splitlines()
    assert "process/thread" in heads
    assert float(row.removeprefix("add 8").split()[0]) > 0
    assert starts.split()[-2:] == ["most", "ms"]
    assert all(float(each.split()[-1]) > 0 for each in rows)
    assert len(rows) == 3


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--device", "openreg:99"], "'openreg:99' is not a usable device"),
        (["--case", "add 9"], "invalid choice: 'add 9'"),
    ],
)
def test_bad_arguments_are_refused(
    eager: ModuleType,
    arguments: list[str],
    reason: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as caught:
        eager.main([*arguments, "--quick"])
    assert caught.value.code == 2
    assert reason in capsys.readouterr().err


def test_training_step_waits_for_the_device(
    load_program: Load, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = load_program("benchmarks/training.py")
    waits: list[str] = []
    monkeypatch.setattr(training, "synchronize", waits.append)
    for make in training.CASES.values():
        make(device)()
    assert waits == [device] * len(training.CASES)
    torch.accelerator.synchronize()


def test_training_prints_steps_per_second_and_ratio(
    load_program: Load, device: str, capsys: pytest.CaptureFixture[str]
) -> None:
    training = load_program("benchmarks/training.py")
    training.main(["--device", device, "--quick", "--case", "MLP"])
    name, cpu, ours, ratio, _ = capsys.readouterr().out.splitlines()[-1].split()
    assert name == "MLP"
    assert float(cpu) > 0
    assert float(ours) > 0
    assert float(ratio) > 0


@pytest.mark.differs_in_process("graphs")
@pytest.mark.filterwarnings("ignore:The AccumulateGrad node's stream")
def test_graphs_are_measured_against_eager_steps(
    load_program: Load,
    device: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    graphs = load_program("benchmarks/graphs.py")
    report = tmp_path / "graphs.json"
    options = ["--quick", "--case", "tiny MLP, SGD", "--json", str(report)]
    assert graphs.main(["--device", device, *options]) == 0
    (row,) = json.loads(report.read_text())["rows"]
    assert row["low"] <= row["ratio"] <= row["high"]
    assert f"{row['ratio']:.2f}" in capsys.readouterr().out.splitlines()[-1]


def test_operators_are_measured_against_the_cpu(tmp_path: Path) -> None:
    report = tmp_path / "operators.json"
    command = [sys.executable, "benchmarks/operators.py", "--quick"]
    options = ("--only", "logaddexp", "--json", report)
    result = run(*command, *options, folder=ROOT)
    assert result.returncode == 0, result.stderr
    rows = json.loads(report.read_text())["rows"]
    assert {"logaddexp 0", "logaddexp 1"} <= {row["name"] for row in rows}
    assert all(row["ratio"] > 0 and row["cpu_us"] > 0 for row in rows)
    assert f"samples          {len(rows)}" in result.stdout


def test_operators_that_do_not_exist_are_named() -> None:
    command = (sys.executable, "benchmarks/operators.py", "--quick")
    result = run(*command, "--only", "nothing", folder=ROOT)
    assert result.returncode == 1
    assert "--only: fewer than two samples for 'nothing'" in result.stderr
