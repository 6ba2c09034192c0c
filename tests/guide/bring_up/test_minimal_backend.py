# SPDX-License-Identifier: BSD-3-Clause
"""Tests that a renamed copy of the skeleton works and trains as well as the CPU."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from support.backends import NAME, SKELETON, Environment
from support.programs import ROOT, Ended, run

TRAIN = """
import json, sys
sys.path.insert(0, sys.argv[1])
import torch
import train_digits

torch.set_num_threads(1)
run = {}
for device in ("cpu", sys.argv[2]):
    for autocast in (False, True):
        trained = train_digits.train(
            device, epochs=6, autocast=autocast, workers=0, progress=False
        )
        run[f"{device} {trained.precision}"] = trained.accuracy
print(json.dumps(run))
"""


def rename_by_command(name: str, folder: Path, *options: str) -> Ended:
    return run(sys.executable, SKELETON / "rename.py", name, folder, *options)


@pytest.fixture(scope="module")
def copy(environment: Environment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("copy") / "backend"
    ended = rename_by_command(NAME, folder)
    assert ended.returncode == 0, ended.stderr
    environment.install(folder)
    return folder


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_copy_adds_two_tensors(environment: Environment, copy: Path) -> None:
    program = "import torch; print(torch.ones(2, device='acme') + 1)"
    ended = environment.run("-c", program, folder=copy)
    assert ended.stdout == "tensor([2., 2.], device='acme:0')\n", ended.stderr


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_copy_passes_its_own_tests(environment: Environment, copy: Path) -> None:
    command = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
    ended = environment.run(*command, folder=copy, seconds=600)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    passed = re.search(r"^(\d+) passed", ended.stdout, re.MULTILINE)
    assert passed, ended.stdout
    assert int(passed[1]) >= 60
    assert "skipped" not in ended.stdout


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_digits_are_learned_as_on_the_cpu(environment: Environment, copy: Path) -> None:
    arguments = ("-c", TRAIN, ROOT / "examples", NAME)
    ended = environment.run(*arguments, folder=copy, seconds=600)
    assert ended.returncode == 0, ended.stderr
    accuracy = json.loads(ended.stdout)
    assert accuracy["cpu float32"] > 0.95
    # Dropout draws different numbers, so the training curves differ.
    assert accuracy[f"{NAME} float32"] == pytest.approx(
        accuracy["cpu float32"], abs=0.03
    )
    assert accuracy[f"{NAME} autocast"] == pytest.approx(
        accuracy["cpu float32"], abs=0.03
    )


def test_copy_has_no_trace_of_the_first_name(tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    assert rename_by_command(NAME, folder).returncode == 0
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) >= 20
    for path in files:
        assert "minimal" not in str(path.relative_to(folder)).lower()
        text = path.read_text(encoding="utf-8")
        assert "minimal" not in text.lower(), path
        assert "[docs:" not in text, path
        assert "[step" not in text, path


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Acme", "must consist of the letters a to z, lower case, and _"),
        ("acme-npu", "must consist of"),
        ("acme2", "must consist of"),  # PyTorch parses no digits
        ("", "must consist of"),
        ("lambda", "is a Python keyword"),
        ("cuda", "is a PyTorch device"),
        ("privateuseone", "is a PyTorch device"),
        ("openreg", "is the device of torch-openreg"),
        ("nn", "is taken: there is torch.nn"),
        ("item", "is taken: there is torch.Tensor.item"),
        ("leaf", "is taken: there is torch.Tensor.is_leaf"),
        ("aten", "is taken: it is an operator namespace"),
    ],
)
def test_wrong_name_is_one_clear_line(tmp_path: Path, name: str, reason: str) -> None:
    ended = rename_by_command(name, tmp_path / "copy")
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"rename.py: {name!r} {reason}")
    assert ended.stderr.count("\n") == 1
    assert not (tmp_path / "copy").exists()


def test_folder_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("", encoding="utf-8")
    for folder, reason in (
        (tmp_path / "full", "is not empty"),
        (tmp_path / "full" / "file", "is not a folder"),
        (SKELETON / "csrc" / "copy", "is inside"),
    ):
        ended = rename_by_command(NAME, folder)
        assert ended.returncode == 2
        assert reason in ended.stderr
        assert ended.stderr.count("\n") == 1
    assert not (SKELETON / "csrc" / "copy").exists()


def test_step_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    ended = rename_by_command(NAME, tmp_path / "copy", "--step", "11")
    assert ended.returncode == 2
    assert "--step" in ended.stderr
