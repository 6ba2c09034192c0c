# SPDX-License-Identifier: BSD-3-Clause
"""Programs of other libraries have the CPU's results on the device."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from .conftest import ROOT, Run

EXAMPLES = sorted((ROOT / "examples" / "using").glob("*.py"))

# The last bit of a few gradients of this model differs; see its section in the guide.
ROUNDED = {"diffusers_pipeline": 1e-6}


def printed(text: str) -> dict[str, str]:
    """Reads lines of the form ``key: value``."""
    return dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)


def said_by(path: Path) -> dict[str, str]:
    """Reads the documented lines that a program prints only on the device."""
    said = re.findall(r"# prints: (.*)$", path.read_text(encoding="utf-8"), re.M)
    return {key: text for key, _, text in (line.partition(": ") for line in said)}


def value(text: str) -> Any:
    """Returns numbers unchanged, and other values as text."""
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_program_has_the_cpu_numbers(run: Run, path: Path) -> None:
    results = {}
    for device in ("openreg:1", "cpu"):
        ended = run(str(path), device)
        assert ended.returncode == 0, ended.stderr
        results[device] = printed(ended.stdout)
    there, here = results["openreg:1"], results["cpu"]
    assert there.pop("device") == "openreg"
    assert here.pop("device") == "cpu"
    assert here
    for key, expected in here.items():
        if path.stem in ROUNDED:
            rounded = pytest.approx(value(expected), rel=ROUNDED[path.stem])
            assert value(there[key]) == rounded
        else:
            assert there[key] == expected
    said = said_by(path)
    for key, text in said.items():
        assert there[key] == text
    # Output that only the device prints must be documented.
    assert set(there) - set(here) <= set(said)


def test_accelerate_does_not_know_the_device_unless_told(run: Run) -> None:
    source = "from accelerate import Accelerator; print(Accelerator().device)"
    assert run("-c", source).stdout == "cpu\n"
    told = run("-c", source, ACCELERATE_TORCH_DEVICE="openreg:0")
    assert told.stdout == "openreg:0\n"


def test_trl_asks_for_bfloat16_and_is_refused(run: Run) -> None:
    source = "from trl import SFTConfig; SFTConfig('out')"
    ended = run("-c", source, ACCELERATE_TORCH_DEVICE="openreg:0")
    assert "Your setup doesn't support bf16/gpu" in ended.stderr
