# SPDX-License-Identifier: BSD-3-Clause
"""Programs have the same results compiled for the device and for the CPU."""

from __future__ import annotations

import functools
import json
import re
import sys
from pathlib import Path

import pytest

from support.programs import run, variables
from support.versions import TORCH

FILE = Path(__file__).with_name("programs.py")
NAMES = re.findall(
    r"^@(?:program|function\(.*\))\ndef (\w+)", FILE.read_text("utf-8"), re.MULTILINE
)
MODES = {
    "asynchronous": {"OPENREG_INLINE_BYTES": "0"},
    "inline": {"OPENREG_INLINE_BYTES": str(2**30), "OPENREG_ENQUEUE_BURSTS": "0"},
    "blocking": {"OPENREG_LAUNCH_BLOCKING": "1"},
}
# Where results are not equal bit by bit, the reason.
CLOSE = {
    "max_autotune_of_batches": "the kernel that was faster is taken, as on the CPU",
    "scatters": "threads of OpenMP add atomically, in any order, as on the CPU",
}
# Where the random numbers are others than the CPU's, the reason.
OTHER_NUMBERS = {}
if TORCH >= (2, 14):
    OTHER_NUMBERS = {
        "checkpointing": "its graph has own generators, seeded once, as for CUDA",
    }
# Programs for which Inductor writes no kernels, only operator calls or nothing.
WITHOUT_KERNELS = {"aot_eager", "fused_adamw"}
if TORCH < (2, 15):  # where Dynamo does not trace them
    WITHOUT_KERNELS.add("recurrent_layers")
pytestmark = pytest.mark.timeout(1500)


@functools.cache
def results(mode: str, threads: str) -> dict[str, dict[str, object]]:
    """Runs all programs in one process."""
    environment = variables(OMP_NUM_THREADS=threads, **MODES[mode])
    ended = run(sys.executable, FILE, environment=environment, seconds=1400)
    assert ended.returncode == 0, ended.stderr
    lines = map(json.loads, ended.stdout.splitlines())
    return {str(line["name"]): line for line in lines}


def test_every_program_is_run() -> None:
    assert len(NAMES) >= 60
    assert results("asynchronous", "2").keys() == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("mode", "threads"),
    [("asynchronous", "2"), ("asynchronous", "1"), ("inline", "2"), ("blocking", "2")],
)
def test_numbers_are_those_of_the_compiled_cpu(
    name: str, mode: str, threads: str
) -> None:
    said = results(mode, threads)[name]
    assert "error" not in said, said["error"]
    is_close = name in CLOSE and said["close"]
    assert said["equal"] or is_close or name in OTHER_NUMBERS, said
    expected = "enqueued" if mode == "asynchronous" else "compiled"
    assert said["kernels"] == ([] if name in WITHOUT_KERNELS else [expected])
