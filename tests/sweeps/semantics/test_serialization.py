# SPDX-License-Identifier: BSD-3-Clause
"""Saving, loading, pickling and copying: aliases, devices, and errors."""

from __future__ import annotations

import io

import pytest
import torch

from openreg_conformance.suites.semantics.serialization import saved


def test_damaged_file_is_refused_on_every_location() -> None:
    file = io.BytesIO(saved(torch.ones(3, device="openreg")).getvalue()[:-50])
    with pytest.raises(RuntimeError, match="failed finding central directory"):
        torch.load(file, map_location="openreg")


def test_device_that_does_not_exist_is_named() -> None:
    # CUDA: _validate_device in torch/serialization.py.
    file = saved(torch.ones(3))
    with pytest.raises(RuntimeError, match="openreg"):
        torch.load(file, map_location="openreg:99")


@pytest.mark.filterwarnings("ignore:Validating sparse tensor invariants")
def test_tensor_of_the_second_device_returns_to_it() -> None:
    # CUDA: the tag of a storage has its index, _cuda_tag in torch/serialization.py.
    loaded = torch.load(saved(torch.ones(3, device="openreg:1")))
    assert str(loaded.device) == "openreg:1"
    moved = torch.load(
        saved(torch.ones(3, device="openreg:1")),
        map_location={"openreg:1": "openreg:0"},
    )
    assert str(moved.device) == "openreg:0"
