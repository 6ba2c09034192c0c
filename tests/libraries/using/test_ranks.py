# SPDX-License-Identifier: BSD-3-Clause
"""Programs of other libraries on two ranks have the results of the CPU with gloo."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import ROOT, Launch
from .test_examples import printed, said_by

PROGRAMS = sorted((ROOT / "examples" / "using" / "ranks").glob("*.py"))


def test_there_are_programs() -> None:
    assert len(PROGRAMS) >= 5


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_program_has_the_cpu_numbers_on_two_ranks(launch: Launch, path: Path) -> None:
    # With the device loaded, gloo has no barrier for accelerate: see the guide.
    ended = launch(str(path), "cpu", TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert ended.returncode == 0, ended.stderr
    here = printed(ended.stdout)
    assert here.pop("device") == "cpu"
    said = said_by(path)
    for sanitizer in ("0", "1"):
        ended = launch(str(path), "openreg", OPENREG_SANITIZER=sanitizer)
        assert ended.returncode == 0, ended.stderr
        there = printed(ended.stdout)
        assert there.pop("device") == "openreg"
        for key, text in said.items():
            assert there[key] == text
        numbers = set(here) - set(said)
        assert numbers
        assert {key: there[key] for key in numbers} == {
            key: here[key] for key in numbers
        }


@pytest.mark.parametrize("name", ["test_ops", "test_distributed_data_loop"])
def test_scripts_of_accelerate_pass(launch: Launch, name: str) -> None:
    """They support only accelerate's devices; test_script takes minutes."""
    module = "torch_openreg.integrations.accelerate"
    script = f"accelerate.test_utils.scripts.{name}"
    ended = launch("-m", module, "-m", script)
    assert ended.returncode == 0, ended.stderr


def test_accelerate_without_the_integration_trains_alone_on_each_rank(
    launch: Launch, tmp_path: Path
) -> None:
    program = tmp_path / "alone.py"
    program.write_text(
        "from accelerate import Accelerator\n"
        "from torch import distributed, nn\n"
        "accelerator = Accelerator()\n"
        "model = accelerator.prepare(nn.Linear(1, 1))\n"
        "print(accelerator.num_processes, distributed.get_world_size(),\n"
        "      accelerator.device.type, type(model).__name__)\n"
    )
    ended = launch(str(program))
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines() == ["1 2 cpu Linear"] * 2
    named = launch(str(program), ACCELERATE_TORCH_DEVICE="openreg:0")
    assert named.stdout.splitlines() == ["1 2 openreg Linear"] * 2
