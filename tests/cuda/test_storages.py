# SPDX-License-Identifier: BSD-3-Clause
"""Storages and legacy types of tensors, which a CPU build compiles out."""

from __future__ import annotations

import copy
import io

import pytest
import torch


def test_a_storage_is_created() -> None:
    storage = torch.UntypedStorage(8, device="cuda:1")
    assert storage.device == torch.device("cuda:1")
    assert storage.is_cuda
    assert storage.nbytes() == 8
    assert torch.UntypedStorage([1, 2, 3], device="cuda").tolist() == [1, 2, 3]
    assert torch.UntypedStorage(device="cuda").nbytes() == 0
    assert torch.UntypedStorage(size=8, device="cuda").nbytes() == 8
    assert torch.UntypedStorage(size=8).device.type == "cpu"
    assert torch.UntypedStorage(4).device.type == "cpu"
    assert torch.UntypedStorage([1, 2]).tolist() == [1, 2]


def test_wrong_arguments_of_a_storage_are_refused() -> None:
    with pytest.raises(TypeError, match="a size in bytes or a sequence"):
        torch.UntypedStorage(1, 2, device="cuda")


def test_a_storage_is_resized() -> None:
    x = torch.arange(4, dtype=torch.uint8, device="cuda")
    storage = x.untyped_storage()
    storage.resize_(8)
    assert storage.nbytes() == 8
    assert x.tolist() == [0, 1, 2, 3]
    storage.resize_(0)
    assert x.untyped_storage().nbytes() == 0


def test_storages_move() -> None:
    storage = torch.arange(3, dtype=torch.uint8).untyped_storage().cuda()
    assert storage.is_cuda
    assert storage.cpu().tolist() == [0, 1, 2]
    assert copy.deepcopy(storage).is_cuda


def test_a_typed_storage() -> None:
    with pytest.warns(UserWarning, match="TypedStorage is deprecated"):
        storage = torch.cuda.FloatStorage(4)
    assert torch.empty(0, device="cuda").set_(storage.untyped()).is_cuda


def test_legacy_types() -> None:
    x = torch.cuda.FloatTensor(2, 3)
    assert x.shape == (2, 3)
    assert x.type() == "torch.cuda.FloatTensor"
    assert isinstance(x, torch.cuda.FloatTensor)
    assert not isinstance(x, torch.cuda.DoubleTensor)
    assert not isinstance(x.cpu(), torch.cuda.FloatTensor)
    assert torch.cuda.LongTensor([1, 2]).tolist() == [1, 2]
    assert torch.cuda.HalfTensor.dtype is torch.half
    assert torch.ones(2).type("torch.cuda.DoubleTensor").dtype is torch.double
    assert torch.ones(2).type(torch.cuda.HalfTensor).is_cuda
    assert torch.ones(2, device="cuda").type(torch.FloatTensor).device.type == "cpu"


@pytest.mark.filterwarnings("ignore:torch.set_default_tensor_type")
def test_the_default_type() -> None:
    torch.set_default_tensor_type(torch.cuda.DoubleTensor)
    try:
        x = torch.ones(2)
        assert x.is_cuda
        assert x.dtype is torch.double
    finally:
        torch.set_default_tensor_type(torch.FloatTensor)
    assert torch.ones(2).device.type == "cpu"


@pytest.mark.filterwarnings("ignore:torch.set_default_tensor_type")
def test_a_default_type_of_the_cpu_keeps_the_default_device() -> None:
    torch.set_default_device("cuda:1")
    try:
        torch.set_default_tensor_type(torch.DoubleTensor)
        x = torch.ones(2)
        assert x.device == torch.device("cuda:1")
        assert x.dtype is torch.double
        torch.set_default_tensor_type(torch.cuda.FloatTensor)
        assert torch.ones(2).device == torch.device("cuda:0")
        torch.set_default_tensor_type(torch.FloatTensor)
        assert torch.ones(2).device.type == "cpu"
    finally:
        torch.set_default_device(None)
        torch.set_default_tensor_type(torch.FloatTensor)


@pytest.mark.parametrize("place", ["cuda", "cuda:1", "cpu", None])
def test_checkpoints_are_loaded_where_they_belong(place: str | None) -> None:
    buffer = io.BytesIO()
    torch.save({"x": torch.arange(3, device="cuda:1")}, buffer)
    buffer.seek(0)
    x = torch.load(buffer, map_location=place)["x"]
    expected = {"cuda": "cuda:0", None: "cuda:1"}.get(place, place)
    assert x.device == torch.device(expected)
    assert x.tolist() == [0, 1, 2]
