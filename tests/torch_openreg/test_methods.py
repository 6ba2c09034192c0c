# SPDX-License-Identifier: BSD-3-Clause
"""Generated methods: tensors, modules, packed sequences and storages move by name."""

from __future__ import annotations

import pytest
import torch
from torch import nn


def test_tensor_method_copies_to_the_current_device() -> None:
    x = torch.arange(6.0)
    y = x.openreg()
    assert y.device == torch.device("openreg", 0)
    assert torch.equal(y.cpu(), x)


@pytest.mark.parametrize("device", [1, "openreg:1", torch.device("openreg", 1)])
def test_tensor_method_takes_index_name_and_device(
    device: int | str | torch.device,
) -> None:
    assert torch.ones(2).openreg(device).device == torch.device("openreg", 1)


def test_tensor_method_keeps_a_tensor_that_is_there() -> None:
    y = torch.ones(2).openreg()
    assert y.openreg() is y


def test_tensor_method_follows_the_current_device() -> None:
    with torch.openreg.device(1):
        assert torch.ones(2).openreg().get_device() == 1


def test_tensor_method_refuses_another_device_type() -> None:
    with pytest.raises(RuntimeError, match="must be openreg device"):
        torch.ones(2).openreg("cpu")


def test_is_openreg_returns_whether_the_device_is_openreg() -> None:
    x = torch.ones(2)
    assert not x.is_openreg
    assert x.openreg().is_openreg


def test_module_method_moves_parameters_and_buffers() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    assert model.openreg(1) is model
    devices = {t.device for t in [*model.parameters(), *model.buffers()]}
    assert devices == {torch.device("openreg", 1)}


def test_packed_sequence_method_moves_the_data() -> None:
    packed = nn.utils.rnn.pack_sequence([torch.ones(3, 2), torch.zeros(1, 2)])
    moved = packed.openreg()
    assert not packed.is_openreg
    assert moved.is_openreg
    assert torch.equal(moved.data.cpu(), packed.data)
    assert torch.equal(moved.batch_sizes, packed.batch_sizes)


def test_untyped_storage_method_copies_the_bytes() -> None:
    storage = torch.arange(10, dtype=torch.uint8).untyped_storage()
    moved = storage.openreg()
    assert not storage.is_openreg
    assert moved.is_openreg
    assert moved.device == torch.device("openreg", 0)
    assert moved.nbytes() == 10
    assert moved.cpu().tolist() == list(range(10))


def test_storage_method_keeps_a_storage_that_is_there() -> None:
    storage = torch.ones(4, device="openreg").untyped_storage()
    assert storage.openreg() is storage


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated:UserWarning")
def test_typed_storage_method_keeps_type_and_values() -> None:
    storage = torch.arange(4.0).storage()
    moved = storage.openreg()
    assert moved.is_openreg
    assert moved.dtype is torch.float32
    assert moved.cpu().tolist() == [0, 1, 2, 3]
