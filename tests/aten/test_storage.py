# SPDX-License-Identifier: BSD-3-Clause
"""Storages: sizes, sharing, and saving."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn


def test_resize_keeps_what_fits(device: str) -> None:
    x = torch.arange(6.0, device=device)
    view = x[1:3]
    assert x.resize_(2, 2).tolist() == [[0, 1], [2, 3]]
    x.resize_(300)
    assert x[:6].tolist() == [0, 1, 2, 3, 4, 5]
    assert x.untyped_storage().nbytes() == 1200
    x[1] = 9
    assert view.tolist() == [9, 2], "the storage has grown for every tensor over it"
    assert x.resize_(0).shape == (0,)


def test_resize_as_and_memory_format(both) -> None:
    def run(x: Tensor, like: Tensor) -> tuple[int, ...]:
        x.resize_(1, 2, 3, 4, memory_format=torch.channels_last).fill_(2)
        assert x.is_contiguous(memory_format=torch.channels_last)
        x.resize_as_(like).zero_()
        return x.stride()

    both(run, torch.zeros(0), torch.zeros(7, 3))


def test_resize_of_an_offset_view_grows_the_storage(both) -> None:
    def run(x: Tensor) -> Tensor:
        part = x[4:]
        part.resize_(10)[2:] = 1
        return part

    both(run, torch.arange(6.0))


def test_resize_that_changes_nothing_keeps_the_memory(device: str) -> None:
    x = torch.zeros(4, device=device)
    address = x.data_ptr()
    x.resize_(2).resize_(2, 2)
    assert x.data_ptr() == address


def test_set_in_all_forms(device: str) -> None:
    base = torch.arange(12.0, device=device)
    storage = base.untyped_storage()
    x = torch.empty(0, device=device)
    assert x.set_(base).tolist() == base.tolist()
    assert x.data_ptr() == base.data_ptr()
    assert x.set_(storage).shape == (12,)
    assert x.set_(storage, 2, (2, 3)).tolist() == [[2, 3, 4], [5, 6, 7]]
    assert x.set_(storage, 1, (2, 2), (4, 2)).tolist() == [[1, 3], [5, 7]]
    assert x.set_(base, 3, (2,), (5,)).tolist() == [3, 8]
    x.fill_(-1)
    assert base[3].item() == base[8].item() == -1
    assert x.set_().shape == (0,)
    assert x.untyped_storage().nbytes() == 0
    assert x.device == base.device


def test_set_past_the_end_grows_the_storage(device: str) -> None:
    base = torch.arange(3.0, device=device)
    x = torch.empty(0, device=device).set_(base.untyped_storage(), 1, (4,))
    assert x[:2].tolist() == [1, 2]
    assert base.untyped_storage().nbytes() == 20


def test_set_refuses_wrong_storages_and_sizes(device: str) -> None:
    x = torch.zeros(3, device=device)
    storage = x.untyped_storage()
    with pytest.raises(RuntimeError, match="devices must match"):
        x.set_(torch.zeros(3).untyped_storage())
    with pytest.raises(RuntimeError, match="unequal size length"):
        x.set_(storage, 0, (1, 2), (1,))
    with pytest.raises(RuntimeError, match="invalid storage offset"):
        x.set_(storage, -1, (1,), (1,))
    assert x.tolist() == [0, 0, 0]


def test_storage_can_be_emptied_and_filled_again(device: str, settled_memory) -> None:
    before = settled_memory(0)
    x = torch.ones(1000, device=device)
    storage = x.untyped_storage()
    storage.resize_(0)
    assert torch.accelerator.memory_allocated(0) == before
    assert storage.data_ptr() == 0
    storage.resize_(4000)
    assert x.fill_(3).sum().item() == 3000
    storage.resize_(8000)
    assert x.sum().item() == 3000


def test_storage_is_indexed_copied_and_moved(device: str) -> None:
    x = torch.arange(4, dtype=torch.uint8, device=device)
    storage = x.untyped_storage()
    assert storage.device == x.device
    assert storage.tolist() == [0, 1, 2, 3]
    assert storage[2] == 2
    storage[2] = 9
    assert x[2].item() == 9
    assert storage.cpu().tolist() == storage.clone().tolist() == [0, 1, 9, 3]
    assert torch.UntypedStorage(7, device=device).nbytes() == 7
    storage.fill_(5)
    assert x.tolist() == [5] * 4


def test_data_swap_keeps_the_tensor(device: str) -> None:
    x, y = torch.zeros(3, device=device), torch.ones(3, device=device)
    x.data = y
    assert x.data_ptr() == y.data_ptr()


def test_deepcopy_copies_memory_and_keeps_sharing(device: str) -> None:
    base = torch.arange(6.0, device=device)
    twin, view = copy.deepcopy((base, base[2:4]))
    assert twin.data_ptr() != base.data_ptr()
    view.fill_(-1)
    assert twin.tolist() == [0, 1, -1, -1, 4, 5]
    assert base.tolist() == [0, 1, 2, 3, 4, 5]
    module = copy.deepcopy(nn.Linear(2, 3).to(device))
    assert all(each.device.type == device for each in module.parameters())


def test_saved_tensors_load_onto_the_cpu(device: str, tmp_path: Path) -> None:
    base = torch.randn(4, 5).to(device)
    content = {
        "base": base,
        "view": base[1:, ::2],
        "conj": torch.randn(3, dtype=torch.complex64).to(device).conj(),
        "half": base.half(),
        "parameter": nn.Parameter(base),
        "other": base.to(f"{device}:1"),
    }
    torch.save(content, tmp_path / "content.pt")
    loaded = torch.load(tmp_path / "content.pt", map_location="cpu")
    for name, value in content.items():
        assert loaded[name].device.type == "cpu"
        assert loaded[name].stride() == value.stride()
        assert loaded[name].equal(value.detach().cpu().resolve_conj())
    loaded["base"].zero_()
    assert not loaded["view"].any(), "what shared memory shares it again"


def test_saved_model_trains_on_from_the_cpu(device: str) -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.randn(5, 3).to(device)).sum().backward()
    optimizer.step()
    file = io.BytesIO()
    torch.save([model.state_dict(), optimizer.state_dict()], file)
    file.seek(0)
    weights, state = torch.load(file, map_location="cpu")
    twin = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    twin.load_state_dict(weights)
    resumed = torch.optim.Adam(twin.parameters())
    resumed.load_state_dict(state)
    for one, other in zip(model.parameters(), twin.parameters(), strict=True):
        assert one.cpu().equal(other)


def test_lazy_clone_copies_when_it_is_written(device: str) -> None:
    x = torch.arange(4.0, device=device)
    lazy = torch._lazy_clone(x)
    lazy.add_(1)
    assert x.tolist() == [0, 1, 2, 3]
    assert lazy.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "source",
    [
        lambda other: (other,),
        lambda other: (other.untyped_storage(),),
        lambda other: (other.untyped_storage(), 0, (2,), (1,)),
    ],
    ids=["tensor", "storage", "part of a storage"],
)
def test_set_refuses_the_memory_of_another_device(
    source: Callable[[Tensor], tuple[Any, ...]], device: str
) -> None:
    x = torch.ones(3, device=f"{device}:0")
    for elsewhere in (f"{device}:1", "cpu"):
        other = torch.zeros(4, device=elsewhere)
        with pytest.raises(RuntimeError, match="to a storage on different device"):
            x.set_(*source(other))
        with pytest.raises(RuntimeError, match="to a storage on different device"):
            other.set_(*source(x))
        assert other.device == torch.device(elsewhere)
    assert x.device == torch.device(device, 0)
    assert x.tolist() == [1, 1, 1]
