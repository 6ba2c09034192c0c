# SPDX-License-Identifier: BSD-3-Clause
"""Tests of the commands that run a script: run, compare, fits."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from openreg_predict.__main__ import main

SCRIPT = """
import argparse
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--width", type=int, default=64)
parser.add_argument("--device", default="openreg")
options = parser.parse_args()
model = nn.Sequential(nn.Linear(options.width, options.width), nn.ReLU())
model.to(options.device)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
x = torch.ones(32, options.width, device=options.device)
for _ in range(4):
    loss = model(x).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print(f"loss {loss.item():.3f}")
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return path


def run(*words: object) -> int:
    return main([str(word) for word in words])


def read(path: Path) -> Any:
    return json.loads(path.read_text())


@pytest.mark.parametrize("dry", [False, True])
def test_run_predicts_the_step_of_an_unchanged_script(
    script: Path, dry: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    out = script.parent / "out.json"
    options = ["--dry"] * dry
    assert run("run", "--device", "h100-sxm", *options, "--json", out, script) == 0
    found = read(out)
    step = found["step_s"]
    assert 0 < step["low"] < step["value"] < step["high"]
    assert found["steps"] == 4
    peak = found["peak_memory_bytes"]
    assert 0 < peak["low"] < peak["value"] < peak["high"]
    assert ("assumed" in capsys.readouterr().out) == dry


def test_run_passes_the_arguments_to_the_script(script: Path) -> None:
    out = [script.parent / name for name in ("small.json", "large.json")]
    for path, width in zip(out, (64, 4096), strict=True):
        run("run", "--device", "t4", "--dry", "--json", path, script, "--width", width)
    assert read(out[1])["step_s"]["value"] > 10 * read(out[0])["step_s"]["value"]


def test_a_record_serves_in_place_of_the_script(script: Path) -> None:
    saved, out = script.parent / "run.jsonl", script.parent / "out.json"
    again = script.parent / "again.json"
    run("run", "--device", "t4", "--json", out, "--record", saved, script)
    run("run", "--device", "t4", "--json", again, saved)
    assert again.read_bytes() == out.read_bytes()


def test_compare_lists_the_devices(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("compare", "--devices", "t4,a100-sxm-80", "--dry", script)
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[0] for line in lines[-2:]} == {"t4", "a100-sxm-80"}


def test_fits_has_status_1_if_the_memory_is_too_small(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("fits", "--device", "t4", "--dry", script) == 0
    assert "fits:" in capsys.readouterr().out
    words = ["--dry", script, "--width", 2**17]
    assert run("fits", "--device", "t4", *words) == 1
    output = capsys.readouterr().out
    assert "does not fit" in output
    assert "ZeRO stage 3" in output


def test_a_page_and_a_trace_are_written(script: Path) -> None:
    page, trace = script.parent / "page.html", script.parent / "trace.json"
    words = ["--html", page, "--trace", trace, script]
    assert run("run", "--device", "t4", "--dry", *words) == 0
    assert "<h2>Bound by</h2>" in page.read_text()
    assert read(trace)["traceEvents"]


def test_a_script_that_fails_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.py"
    path.write_text("raise SystemExit('no data')\n")
    assert run("run", "--device", "t4", path) == 2
    assert "bad.py ended with 'no data'" in capsys.readouterr().err
    assert run("run", "--device", "t4", tmp_path / "none.py") == 2
    assert "none.py' is not a file" in capsys.readouterr().err


@pytest.mark.timeout(150)
def test_scripts_may_say_cuda(tmp_path: Path) -> None:
    pytest.importorskip("openreg_cuda")
    path, out = tmp_path / "train.py", tmp_path / "out.json"
    path.write_text(
        textwrap.dedent("""
        import torch
        assert torch.cuda.is_available()
        model = torch.nn.Linear(8, 8).cuda()
        for _ in range(3):
            model(torch.ones(4, 8, device="cuda")).sum().backward()
        torch.cuda.synchronize()
        """)
    )
    command = [sys.executable, "-m", "openreg_predict", "run", "--device", "t4"]
    subprocess.run([*command, "--dry", "--json", out, path], check=True, timeout=140)
    assert read(out)["steps"] == 2  # the first one adds no gradients


def test_equal_runs_give_equal_files_beside_busy_processes(script: Path) -> None:
    out = [script.parent / name for name in ("quiet.json", "busy.json")]
    run("run", "--device", "h100-sxm", "--json", out[0], script)
    busy = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)
    ]
    try:
        run("run", "--device", "h100-sxm", "--json", out[1], script)
    finally:
        for each in busy:
            each.kill()
            each.wait()
    assert out[0].read_bytes() == out[1].read_bytes()
