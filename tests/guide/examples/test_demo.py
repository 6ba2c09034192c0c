# SPDX-License-Identifier: BSD-3-Clause
"""The demonstration and the usage example match the README."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from support.programs import ROOT, Load, run

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def demo(load_program: Load) -> ModuleType:
    return load_program("examples/train_digits.py")


@pytest.mark.parametrize("seed", [0, 5])
def test_float32_loss_curve_equals_the_cpus(
    demo: ModuleType, device: str, seed: int
) -> None:
    options = {"epochs": 2, "seed": seed, "progress": False}
    ours, cpu = demo.train(device, **options), demo.train("cpu", **options)
    assert ours.losses == cpu.losses
    assert ours.accuracy == cpu.accuracy
    weights = cpu.model.state_dict()
    for name, value in ours.model.state_dict().items():
        assert value.device.type == torch.device(device).type
        assert torch.equal(value.cpu(), weights[name]), name
    assert cpu.losses[-1] < cpu.losses[0]


def test_training_releases_its_device_memory(demo: ModuleType, device: str) -> None:
    torch.accelerator.synchronize(device)
    before = torch.openreg.memory_allocated(device)
    run = demo.train(device, epochs=2, progress=False)
    weights = sum(value.nbytes for value in run.model.state_dict().values())
    # At least the weights, their gradients and the optimizer's two moments.
    assert min(run.allocated) > 3 * weights
    for peak, allocated in zip(run.peaks, run.allocated, strict=True):
        assert peak > allocated
    del run
    gc.collect()
    torch.accelerator.synchronize(device)
    assert torch.openreg.memory_allocated(device) == before


def test_demo_prints_the_table_and_leaves_its_files(
    demo: ModuleType,
    device: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    output = tmp_path / "made" / "here"
    arguments = ["--device", device, "--epochs", "1", "--output", str(output)]
    assert demo.main(arguments) == 0
    printed = capsys.readouterr()
    assert "bit for bit: yes" in printed.out
    for name in (f"{device} float32", "cpu float32", f"{device} autocast"):
        row = next(line for line in printed.out.splitlines() if name in line)
        accuracy, milliseconds, ratio = row.removeprefix(name).split()[:3]
        assert 0 < float(accuracy.rstrip("%")) <= 100
        assert float(milliseconds) > 0
        assert float(ratio) > 0
        assert "MiB" in row or name == "cpu float32"
    assert "step/s" in printed.err
    assert (output / "digits.png").read_bytes().startswith(PNG)
    # The checkpoint was saved from the device and loads without it.
    path = output / "digits.pt"
    there = torch.load(path, weights_only=True)["model"]
    here = torch.load(path, map_location="cpu", weights_only=True)["model"]
    for name, value in here.items():
        assert there[name].device == torch.device(device, 0)
        assert torch.equal(there[name].cpu(), value)


@pytest.mark.slow
def test_demo_learns_in_both_precisions(demo: ModuleType, device: str) -> None:
    full = demo.train(device, progress=False)
    mixed = demo.train(device, autocast=True, progress=False)
    assert full.accuracy >= 0.97
    assert abs(mixed.accuracy - full.accuracy) <= 0.01
    # Mixed precision was used: the curves are close but not equal.
    assert mixed.losses != full.losses
    assert mixed.losses[0] == pytest.approx(full.losses[0], abs=0.01)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--epochs", "0"], "'0' is not a whole number from 1 up"),
        (["--epochs", "many"], "'many' is not a whole number from 1 up"),
        (["--seed", "-1"], "'-1' is not a whole number from 0"),
        (["--seed", "0x1"], "'0x1' is not a whole number from 0"),
        (["--device", "openreg:99"], "'openreg:99' is not a usable device"),
        (["--device", "abacus"], "'abacus' is not a usable device"),
        (["--output", __file__], "cannot create the folder"),
        (["--epoch-count", "3"], "unrecognized arguments"),
    ],
)
def test_demo_refuses_bad_arguments(
    demo: ModuleType,
    arguments: list[str],
    reason: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as caught:
        demo.parse_arguments(arguments)
    assert caught.value.code == 2
    assert reason in capsys.readouterr().err


def test_usage_example_prints_results_and_devices() -> None:
    result = run(sys.executable, ROOT / "examples" / "usage.py")
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    assert result.stdout == (
        "OpenReg backend is available!\n"
        "Result y:\n"
        " tensor([[3., 4.],\n"
        "        [5., 6.]], device='openreg:0')\n"
        "Device of y: openreg:0\n"
        "Result z:\n"
        " tensor([[3., 4.],\n"
        "        [5., 6.]])\n"
        "Device of z: cpu\n"
    )
