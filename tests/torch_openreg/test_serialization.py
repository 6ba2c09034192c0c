# SPDX-License-Identifier: BSD-3-Clause
"""Saving, loading, copying and printing what is on the device."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch

Output = Callable[..., str]


def saved(value: object) -> io.BytesIO:
    """Returns what torch.save writes, to be read from its start."""
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return file


@pytest.mark.parametrize(
    ("location", "device"),
    [
        (None, "openreg:1"),
        ("cpu", "cpu"),
        ("openreg", "openreg:0"),
        ("openreg:0", "openreg:0"),
        (torch.device("openreg", 1), "openreg:1"),
        ({"openreg:1": "openreg:0"}, "openreg:0"),
        (lambda storage, _: storage.openreg(0), "openreg:0"),
    ],
)
def test_saved_tensor_is_loaded_where_it_should_be(location: Any, device: str) -> None:
    x = torch.arange(6.0, device="openreg:1").view(2, 3)
    y = torch.load(saved(x), map_location=location)
    assert str(y.device) == device
    assert torch.equal(y.cpu(), x.cpu())


def test_loading_keeps_shared_storage_and_strides() -> None:
    x = torch.arange(6.0, device="openreg").view(2, 3)
    base, view = torch.load(saved([x, x.T]))
    base.add_(1)
    assert torch.equal(view.cpu(), x.cpu().T + 1)
    assert view.stride() == (1, 3)


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor, torch.quantize_per")
@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
@pytest.mark.parametrize("zero_point", [0, 0.5], ids=["int", "float"])
@pytest.mark.parametrize("location", [None, "cpu", "openreg:0"])
def test_loading_keeps_the_quantizer(location: str | None, zero_point: float) -> None:
    x = torch.randn(2, 3)
    scales, zero_points = torch.tensor([0.1, 0.2]), torch.full((2,), zero_point)
    for q in (
        torch.quantize_per_tensor(x, 0.1, 3, torch.quint8),
        torch.quantize_per_channel(x, scales, zero_points, 0, torch.quint8),
    ):
        y = torch.load(saved(q.to("openreg:1")), map_location=location)
        assert str(y.device) == (location or "openreg:1")
        assert y.cpu().equal(q)
        if q.qscheme() != torch.per_tensor_affine:
            assert y.q_per_channel_scales().device == y.device


def test_loading_to_a_device_past_the_count_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"device_count\(\) is 2"):
        torch.load(saved(torch.ones(2)), map_location="openreg:5")


def test_tensor_saved_on_more_devices_is_refused_with_the_count(
    output: Output, tmp_path: Any
) -> None:
    path = tmp_path / "x.pt"
    source = (
        f'import torch; torch.save(torch.ones(2, device="openreg:3"), {str(path)!r})'
    )
    output(source, OPENREG_DEVICE_COUNT="4")
    with pytest.raises(RuntimeError, match=r"OPENREG device 3 but .* is 2"):
        torch.load(path)
    assert torch.load(path, map_location="cpu").tolist() == [1, 1]


def test_state_dict_of_the_device_loads_into_the_cpu() -> None:
    model, other = torch.nn.Linear(3, 2).openreg(), torch.nn.Linear(3, 2)
    other.load_state_dict(torch.load(saved(model.state_dict()), map_location="cpu"))
    assert torch.equal(other.weight, model.weight.cpu())


def test_deepcopy_and_pickle_stay_on_the_device() -> None:
    x = torch.arange(4.0, device="openreg:1", requires_grad=True)
    for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert y.device == x.device
        assert y.requires_grad
        assert torch.equal(y, x)
        assert y.data_ptr() != x.data_ptr()


def test_tensor_is_printed_with_its_device() -> None:
    assert repr(torch.ones(2, device="openreg:1")) == (
        "tensor([1., 1.], device='openreg:1')"
    )
    assert "device='openreg:0'" in repr(torch.nn.Parameter(torch.ones(2).openreg()))
    assert repr(torch.device("openreg", 1)) == "device(type='openreg', index=1)"


def test_printing_a_large_tensor_shows_its_corners() -> None:
    shown = repr(torch.arange(10_000, device="openreg"))
    assert shown == (
        "tensor([   0,    1,    2,  ..., 9997, 9998, 9999], device='openreg:0')"
    )
