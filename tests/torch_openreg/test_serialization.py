# SPDX-License-Identifier: BSD-3-Clause
"""Saving, loading, copying and printing device tensors."""

from __future__ import annotations

import copy
import io
import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

Output = Callable[..., str]


def saved(value: object) -> io.BytesIO:
    """Returns a file with the output of torch.save, at its start."""
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


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("weights_only", [True, False])
def test_both_file_formats_keep_device_type_and_gradient(
    zipped: bool, weights_only: bool
) -> None:
    value = {
        "x": torch.arange(6, dtype=torch.bfloat16, device="openreg:1").view(2, 3).T,
        "weight": torch.nn.Parameter(torch.ones(2, device="openreg")),
        "empty": torch.empty(0, 4, device="openreg:1"),
        "scalar": torch.tensor(2.5, dtype=torch.float64, device="openreg"),
        "complex": torch.tensor([1 + 2j], device="openreg").conj(),
    }
    file = io.BytesIO()
    torch.save(value, file, _use_new_zipfile_serialization=zipped)
    file.seek(0)
    loaded = torch.load(file, weights_only=weights_only)
    for name, x in value.items():
        y = loaded[name]
        assert (y.device, y.dtype, y.shape) == (x.device, x.dtype, x.shape)
        assert y.requires_grad is x.requires_grad
        assert y.tolist() == x.tolist()
    assert isinstance(loaded["weight"], torch.nn.Parameter)


@pytest.mark.filterwarnings("ignore:Sparse .* tensor support is in beta state")
@pytest.mark.filterwarnings("ignore:Validating sparse tensor invariants")
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_sparse_tensors_are_saved_copied_and_pickled(layout: torch.layout) -> None:
    x = torch.eye(3).to_sparse(layout=layout).to("openreg:1")
    copies = [copy.deepcopy(x), pickle.loads(pickle.dumps(x))]
    # Last, because it also validates what pickle has loaded, with the same warning.
    copies.append(torch.load(saved(x)))
    for y in copies:
        assert (y.layout, y.device) == (layout, x.device)
        assert torch.equal(y.to_dense(), x.to_dense())


@pytest.mark.parametrize("is_sorted", [True, False])
def test_indices_of_a_coalesced_tensor_are_checked(is_sorted: bool) -> None:
    """Since torch 2.14, torch.load() calls this check."""
    indices = torch.tensor([[0, 2], [1, 0]] if is_sorted else [[2, 0], [1, 0]])
    outcomes = []
    for device in ("cpu", "openreg:1"):
        values = torch.ones(2, 4, device=device)
        try:
            torch._validate_sparse_coo_tensor_args(
                indices.to(device), values, (3, 2, 4), True
            )
            outcomes.append("valid")
        except RuntimeError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]
    assert (outcomes[0] == "valid") is is_sorted


@pytest.mark.parametrize("mmap", [False, True])
def test_file_is_loaded_from_its_path(mmap: bool, tmp_path: Any) -> None:
    path = tmp_path / "x.pt"
    torch.save(torch.arange(5.0), path)
    x = torch.load(path, map_location="openreg:1", mmap=mmap)
    assert x.tolist() == [0, 1, 2, 3, 4]
    assert str(x.device) == "openreg:1"


@pytest.mark.parametrize(
    ("location", "device"),
    [
        (lambda _storage, _place: None, "openreg:1"),
        (
            lambda storage, place: storage.cpu() if place == "openreg:1" else 1 / 0,
            "cpu",
        ),
        ({"openreg:1": "cpu"}, "cpu"),
        ({"openreg:0": "cpu"}, "openreg:1"),
        ("meta", "meta"),
    ],
)
def test_map_location_is_asked_for_each_storage(location: Any, device: str) -> None:
    x = torch.load(saved(torch.ones(2, device="openreg:1")), map_location=location)
    assert str(x.device) == device


@pytest.mark.parametrize(
    ("location", "error", "message"),
    [
        ("openreg:x", RuntimeError, "openreg:x"),
        ("openreg:-1", RuntimeError, "openreg:-1"),
        ("nonsense", RuntimeError, "nonsense"),
        ("cuda", RuntimeError, "CUDA"),
        (7, TypeError, "int"),
    ],
)
def test_wrong_map_location_is_refused(
    location: Any, error: type[Exception], message: str
) -> None:
    file = saved(torch.ones(2, device="openreg"))
    with pytest.raises(error, match=message):
        torch.load(file, map_location=location)
    file.seek(0)
    assert torch.load(file).tolist() == [1, 1]


def test_truncated_file_is_an_error_and_the_device_still_works() -> None:
    content = saved(torch.ones(1000, device="openreg")).getvalue()
    with pytest.raises((RuntimeError, EOFError)):
        torch.load(io.BytesIO(content[: len(content) // 2]))
    assert torch.ones(2, device="openreg").sum().item() == 2


def test_deepcopy_keeps_shared_storages() -> None:
    x = torch.arange(6.0, device="openreg")
    first, second = copy.deepcopy([x, x[2:4]])
    first.zero_()
    assert second.tolist() == [0, 0]
    assert x.tolist() == [0, 1, 2, 3, 4, 5]
    model = torch.nn.Linear(2, 2).openreg()
    model.tied = model.weight
    other = copy.deepcopy(model)
    assert other.tied is other.weight
    assert other.weight.data_ptr() != model.weight.data_ptr()


def test_generator_is_pickled_with_its_state() -> None:
    generator = torch.Generator("openreg:1").manual_seed(3)
    torch.rand(5, generator=generator, device="openreg:1")
    for other in (pickle.loads(pickle.dumps(generator)), generator.clone_state()):
        assert other.device == generator.device
        assert torch.equal(other.get_state(), generator.get_state())


@pytest.mark.parametrize("value", [torch.Stream, torch.Event])
def test_streams_and_events_are_not_pickled(value: Callable[[str], object]) -> None:
    with pytest.raises(TypeError, match="cannot pickle"):
        pickle.dumps(value("openreg"))


def test_numpy_is_refused_in_the_words_of_cuda() -> None:
    x = torch.ones(2, device="openreg:1")
    message = (
        r"can't convert openreg:1 device type tensor to numpy\. Use Tensor\.cpu\(\) to "
        r"copy the tensor to host memory first\."
    )
    for convert in (lambda: x.numpy(), lambda: np.asarray(x), lambda: np.sin(x)):
        with pytest.raises(TypeError, match=message):
            convert()
    assert x.numpy(force=True).tolist() == [1, 1]
    assert torch.asarray(np.ones(3), device="openreg").tolist() == [1, 1, 1]
    assert torch.from_numpy(np.ones(3)).openreg().tolist() == [1, 1, 1]


def test_memory_of_the_device_is_shared_already_as_on_cuda() -> None:
    x = torch.ones(2, device="openreg")
    assert x.is_shared()
    assert x.share_memory_() is x
    model = torch.nn.Linear(2, 2).openreg()
    pointer = model.weight.data_ptr()
    assert model.share_memory().weight.data_ptr() == pointer


@pytest.mark.filterwarnings("ignore:Sparse .* tensor support is in beta state")
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype")
@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.tensor([1 + 2j, -0.5j]),
        lambda: torch.tensor([1 + 2j]).conj(),
        lambda: torch.empty(0),
        lambda: torch.empty(2, 0, 3),
        lambda: torch.tensor(7),
        lambda: torch.tensor([float("nan"), float("inf"), 1e10, -3.0]),
        lambda: torch.tensor([True, False]),
        lambda: torch.ones(2, 2, dtype=torch.bfloat16),
        lambda: torch.ones(2).to(torch.float8_e4m3fn),
        lambda: torch.arange(10_000.0).view(100, 100),
        lambda: torch.arange(12.0).view(3, 4).T[::2],
        lambda: torch.ones(2, requires_grad=True) * 3,
        lambda: torch.eye(3).to_sparse(),
        lambda: torch.eye(3).to_sparse_csr(),
        lambda: torch.nested.nested_tensor([torch.ones(2), torch.zeros(3)]),
    ],
)
def test_tensor_is_printed_as_on_the_cpu_with_its_device(
    make: Callable[[], torch.Tensor],
) -> None:
    x = make().detach()
    shown = repr(x.to("openreg:1"))
    assert "device='openreg:1'" in shown
    # The device and the line breaks differ, but the numbers are equal.
    words = [re.sub(r"device='openreg:1',?", "", shown), repr(x)]
    mine, cpu = (re.sub(r"[\s,)]+", " ", text).strip() for text in words)
    assert mine == cpu


def test_default_device_holds_for_all_factories_and_ends() -> None:
    torch.set_default_device("openreg:1")
    try:
        assert torch.get_default_device() == torch.device("openreg", 1)
        made = [
            torch.ones(2),
            torch.randn(2),
            torch.tensor([1.0]),
            torch.arange(3),
            torch.randperm(4),
            torch.nn.Linear(2, 2).weight,
            torch.nn.Embedding(2, 2).weight,
            torch.full((2,), 1.5),
        ]
        assert {x.device for x in made} == {torch.device("openreg", 1)}
        with torch.device("cpu"):
            assert torch.ones(2).device.type == "cpu"
    finally:
        torch.set_default_device(None)
    assert torch.ones(2).device.type == "cpu"
