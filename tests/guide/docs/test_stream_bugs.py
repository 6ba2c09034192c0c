# SPDX-License-Identifier: BSD-3-Clause
"""examples/stream_bugs: every run reports the bug with its source line, and the
corrected programs always have the correct result."""

from __future__ import annotations

import gc
import importlib
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch.openreg import memory, sanitizer

from support.programs import ROOT, Load, Program
from torch_openreg.testing import assert_no_leak

EXAMPLES = ROOT / "examples" / "stream_bugs"
PROGRAMS = ["missing_synchronize", "missing_record_stream", "leak"]
REPETITIONS = 1000


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    """Imports a program of the folder like a program in the same folder."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield importlib.import_module
    for name in [*PROGRAMS, "slow_device"]:
        sys.modules.pop(name, None)


@pytest.fixture
def slow_device(load: Load) -> Callable[[], Any]:
    return load("slow_device").slow_device


def line(module: ModuleType, text: str) -> str:
    """Returns ``file:number: text`` for the first line with a text."""
    assert module.__file__ is not None
    lines = Path(module.__file__).read_text(encoding="utf-8").splitlines()
    number, found = next((n, x) for n, x in enumerate(lines, 1) if text in x)
    return f"{module.__file__}:{number}: {found.strip()}"


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_prints_right_and_wrong_and_the_line(
    program: Program, name: str
) -> None:
    path = EXAMPLES / f"{name}.py"
    result = program(path)
    assert result.returncode == 0, result.stderr
    assert "right" in result.stdout.lower()
    assert "wrong" in result.stdout.lower()
    assert f"{path}:" in result.stdout


def test_readme_shows_the_printed_output(program: Program) -> None:
    result = program(EXAMPLES / "missing_synchronize.py")
    readme = (EXAMPLES.parents[1] / "README.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```console\n(possible.*?)^```$", readme, re.M | re.S)
    printed = result.stdout[result.stdout.index("possible") :]
    printed = printed.replace(f"{EXAMPLES.parents[1]}/", "")
    address = re.compile(r"0x[0-9a-f]+")
    assert address.sub("", printed) == address.sub("", shown)
    assert result.stdout.startswith("wrong: 0.0\nright: 9.0\n")


# ---- a missing synchronize


def test_missing_synchronize_reads_zeros_every_time(
    load: Load, slow_device: Callable[[], Any]
) -> None:
    bug = load("missing_synchronize")
    x = torch.full((100,), 3.0, device="openreg")
    assert bug.right(x) == 9
    for _ in range(50):
        with slow_device():
            assert bug.wrong(x) == 0


def test_missing_synchronize_is_found_by_its_lines(
    load: Load, slow_device: Callable[[], Any]
) -> None:
    bug = load("missing_synchronize")
    x = torch.full((100,), 3.0, device="openreg")
    bug.right(x)
    for device in (nullcontext, slow_device):
        with (
            device(),
            pytest.raises(sanitizer.UnsynchronizedAccessError) as found,
            sanitizer.enabled(),
        ):
            bug.wrong(x)
        assert found.value.previous.line == line(bug, "host.copy_(x * x")
        assert found.value.current.line == line(bug, "return host.mean()")


@pytest.mark.parametrize("sanitized", [False, True])
def test_synchronize_is_right_a_thousand_times(
    load: Load,
    slow_device: Callable[[], Any],
    sanitized: bool,
) -> None:
    bug = load("missing_synchronize")
    x = torch.full((100,), 3.0, device="openreg")
    bug.right(x)
    with sanitizer.enabled() if sanitized else nullcontext():
        for n in range(REPETITIONS):
            value = n % 64  # float32 holds the sum of the squares
            x.fill_(value)
            with slow_device():
                assert bug.right(x) == value**2


# ---- a missing record_stream


def batches() -> list[torch.Tensor]:
    return [torch.full((10,), float(n), device="openreg") for n in range(1, 5)]


def test_missing_record_stream_adds_later_batches_every_time(
    load: Load, slow_device: Callable[[], Any]
) -> None:
    bug = load("missing_record_stream")
    given, side = batches(), torch.Stream("openreg")
    assert bug.right(given, side) == 10 * (1 + 4 + 9 + 16)
    for _ in range(50):
        with slow_device():
            assert bug.wrong(given, side) == 10 * (9 + 16 + 9 + 16)


def test_missing_record_stream_is_found_by_its_lines(
    load: Load, slow_device: Callable[[], Any]
) -> None:
    bug = load("missing_record_stream")
    given, side = batches(), torch.Stream("openreg")
    bug.right(given, side)
    for device in (nullcontext, slow_device):
        with (
            device(),
            pytest.raises(sanitizer.UseAfterFreeError) as found,
            sanitizer.enabled(),
        ):
            bug.wrong(given, side)
        assert found.value.previous.line == line(bug, "total += x")
        assert found.value.current.line == line(bug, "x = batch * batch")
        assert found.value.freed == line(bug, "x = batch * batch")


@pytest.mark.parametrize("sanitized", [False, True])
def test_record_stream_is_right_a_thousand_times(
    load: Load,
    slow_device: Callable[[], Any],
    sanitized: bool,
) -> None:
    bug = load("missing_record_stream")
    given, side = batches(), torch.Stream("openreg")
    bug.right(given, side)
    with sanitizer.enabled() if sanitized else nullcontext():
        for _ in range(REPETITIONS):
            with slow_device():
                assert bug.right(given, side) == 300


# ---- a leak


def leaking(bug: ModuleType, losses: Any) -> Callable[[], None]:
    gc.collect()  # so that garbage of other tests is not freed later
    weight = torch.randn(64, 64, device="openreg", requires_grad=True)
    x = torch.randn(64, 64, device="openreg")
    return lambda: bug.step(weight, x, losses)


def test_leak_grows_by_the_same_bytes_in_each_step(
    load: Load,
) -> None:
    bug = load("leak")
    step = leaking(bug, bug.Wrong())
    step()
    for _ in range(50):
        before = torch.accelerator.memory_allocated()
        step()
        # The tensor that tanh's backward needs; the new sum reuses its place.
        assert torch.accelerator.memory_allocated() - before == 64 * 64 * 4


def test_leak_report_names_the_lines_of_the_remaining_memory(
    load: Load,
) -> None:
    bug = load("leak")
    step = leaking(bug, bug.Wrong())
    step()
    with pytest.raises(AssertionError) as found, assert_no_leak():
        step()
    made = f"16384 bytes: float32[64, 64] by aten::tanh, {line(bug, 'torch.tanh(')}"
    assert made in str(found.value)


def test_memory_history_names_the_line_of_the_leak(
    load: Load,
) -> None:
    bug = load("leak")
    step = leaking(bug, bug.Wrong())
    step()
    memory._record_memory_history(stacks="python")
    try:
        for _ in range(10):
            step()
        snapshot = memory._snapshot()
    finally:
        memory._record_memory_history(None)
    file, number, _ = line(bug, "torch.tanh(").split(":", 2)
    left = [
        block
        for segment in snapshot["segments"]
        for block in segment["blocks"]
        if block["state"] == "active_allocated" and block["frames"]
    ]
    places = [
        (block["frames"][0]["filename"], block["frames"][0]["line"]) for block in left
    ]
    assert places.count((file, int(number))) == 10


def test_corrected_leak_keeps_its_memory_a_thousand_times(
    load: Load,
) -> None:
    bug = load("leak")
    step = leaking(bug, bug.Right())
    step()
    before = torch.accelerator.memory_allocated()
    with assert_no_leak():
        for _ in range(REPETITIONS):
            step()
            assert torch.accelerator.memory_allocated() == before
