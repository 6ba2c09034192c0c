# SPDX-License-Identifier: BSD-3-Clause
"""safetensors files with device tensors."""

from __future__ import annotations

from pathlib import Path

import pytest
import safetensors
import torch
from safetensors.torch import load, load_file, load_model, save, save_file, save_model


def tensors() -> dict[str, torch.Tensor]:
    """Makes tensors of several types, shapes and devices."""
    return {
        "matrix": torch.randn(3, 4, device="openreg:1"),
        "half": torch.arange(5, device="openreg").to(torch.bfloat16),
        "empty": torch.empty(0, 2, device="openreg"),
        "scalar": torch.tensor(3, device="openreg"),
    }


def test_saved_tensors_are_loaded_to_the_cpu(tmp_path: Path) -> None:
    x = tensors()
    save_file(x, tmp_path / "x.safetensors")
    for loaded in (load_file(tmp_path / "x.safetensors"), load(save(x))):
        assert loaded.keys() == x.keys()
        for name, value in loaded.items():
            assert value.device.type == "cpu"
            assert value.dtype == x[name].dtype
            assert torch.equal(value, x[name].cpu())


@pytest.mark.parametrize("index", [0, 1])
def test_saved_tensors_are_loaded_to_a_device_by_its_number(
    index: int, tmp_path: Path
) -> None:
    x = tensors()
    save_file(x, tmp_path / "x.safetensors")
    for name, value in load_file(tmp_path / "x.safetensors", device=index).items():
        assert value.device == torch.device("openreg", index)
        assert torch.equal(value.cpu(), x[name].cpu())
    with safetensors.safe_open(tmp_path / "x.safetensors", "pt", device=index) as file:
        rows = file.get_slice("matrix")[1:]
    assert rows.device == torch.device("openreg", index)
    assert torch.equal(rows.cpu(), x["matrix"].cpu()[1:])


def test_models_are_saved_and_loaded(tmp_path: Path) -> None:
    model = torch.nn.Linear(3, 2).openreg()
    save_model(model, str(tmp_path / "model.safetensors"))
    other = torch.nn.Linear(3, 2).openreg()
    missing = load_model(other, tmp_path / "model.safetensors", device=0)
    assert missing == (set(), [])
    x = torch.ones(2, 3, device="openreg")
    assert torch.equal(other(x).cpu(), model(x).cpu())


def test_device_past_the_count_is_refused(tmp_path: Path) -> None:
    save_file(tensors(), tmp_path / "x.safetensors")
    with pytest.raises(RuntimeError, match="7 is not a number from 0 to 1"):
        load_file(tmp_path / "x.safetensors", device=7)


def test_name_of_the_device_is_unknown_to_safetensors(tmp_path: Path) -> None:
    save_file(tensors(), tmp_path / "x.safetensors")
    with pytest.raises(safetensors.SafetensorError, match="device openreg is invalid"):
        load_file(tmp_path / "x.safetensors", device="openreg")


def test_shared_memory_is_refused_as_on_the_cpu() -> None:
    for device in ("cpu", "openreg"):
        x = torch.ones(4, device=device)
        with pytest.raises(RuntimeError, match="share memory"):
            save({"x": x, "y": x[1:]})
