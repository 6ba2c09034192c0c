# SPDX-License-Identifier: BSD-3-Clause
"""Programs for GPUs run unchanged on simulated CUDA devices."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Run

_PROGRAMS = Path(__file__).parent / "gpu_programs"


def results(run: Run, program: str, *arguments: str) -> list[str]:
    """Returns the lines that start with a name of results."""
    ended = run(
        *(str(_PROGRAMS / program), *arguments),
        OPENREG_DEVICE="cuda",
        OPENREG_DEVICE_COUNT="1" if program.startswith("transformers") else "2",
        OPENREG_DEVICE_MEMORY="1GiB",
    )
    assert ended.returncode == 0, ended.stderr
    names = ("weights", "loss")
    return [line for line in ended.stdout.splitlines() if line.startswith(names)]


def numbers(lines: list[str]) -> list[float]:
    values = [json.loads(line.partition(" ")[2]) for line in lines]
    return [x for each in values for x in (each if isinstance(each, list) else [each])]


@pytest.mark.parametrize("devices", ["1", "2"])
def test_lightning_trains_as_on_the_cpu(run: Run, devices: str) -> None:
    here = results(run, "lightning_trainer.py", "cpu", devices, "32-true")
    there = results(run, "lightning_trainer.py", "gpu", devices, "32-true")
    assert len(here) == 2
    assert there == here


def test_lightning_trains_in_half_precision(run: Run) -> None:
    here = results(run, "lightning_trainer.py", "cpu", "1", "32-true")
    there = results(run, "lightning_trainer.py", "gpu", "1", "16-mixed")
    assert there != here
    assert numbers(there) == pytest.approx(numbers(here), abs=0.05)


def test_the_trainer_of_transformers_trains_as_on_the_cpu(run: Run) -> None:
    here = results(run, "transformers_trainer.py", "cpu")
    there = results(run, "transformers_trainer.py", "cuda")
    assert len(here) == 2
    assert there == here


def test_the_trainer_of_transformers_trains_in_half_precision(run: Run) -> None:
    here = results(run, "transformers_trainer.py", "cpu")
    there = results(run, "transformers_trainer.py", "cuda", "fp16")
    assert there != here
    assert numbers(there) == pytest.approx(numbers(here), abs=0.05)
