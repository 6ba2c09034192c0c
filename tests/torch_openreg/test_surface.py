# SPDX-License-Identifier: BSD-3-Clause
"""The API of torch.openreg: public, documented, and expected by torch."""

from __future__ import annotations

import inspect

import pytest
import torch
from torch.profiler import ProfilerActivity

import torch_openreg


@pytest.mark.parametrize(
    "module",
    [
        torch.openreg,
        torch.openreg.amp,
        torch.openreg.memory,
        torch.openreg.sanitizer,
        torch_openreg,
    ],
)
def test_public_names_exist_and_are_documented(module: object) -> None:
    names = module.__all__
    assert names == sorted(names)
    undocumented = [
        name
        for name in names
        if callable(getattr(module, name)) and not inspect.getdoc(getattr(module, name))
    ]
    assert undocumented == []


# Names that torch.cuda lacks, for features of a simulated device.
OWN = {
    "DeviceProperties",
    "Mechanism",
    "from_tiled",
    "get_amp_supported_dtype",
    "mechanisms",
    "operator_paths",
    "reset_device",
    "sanitizer",
    "set_storage_name",
    "set_tensor_flags",
    "storage_name",
    "tensor_flags",
    "tile_shape",
    "to_tiled",
}


def test_public_names_are_those_of_torch_cuda() -> None:
    missing = {name for name in torch.openreg.__all__ if not hasattr(torch.cuda, name)}
    assert missing == OWN


@pytest.mark.parametrize(
    "name",
    [
        "is_available",
        "device_count",
        "current_device",
        "device",
        "set_device",
        "is_initialized",
        "_lazy_init",
        "_is_in_bad_fork",
        "manual_seed_all",
        "get_rng_state",
        "set_rng_state",
        "_get_generator",
        "get_amp_supported_dtype",
        "Stream",
        "Event",
        "stream",
        "current_stream",
        "synchronize",
        "get_device_properties",
        "get_device_name",
    ],
)
def test_function_that_torch_looks_up_is_there(name: str) -> None:
    assert callable(getattr(torch.openreg, name))


def test_attributes_that_torch_looks_up_are_there() -> None:
    assert torch.openreg._initialized is True
    assert len(torch.openreg.default_generators) == 2
    assert torch.openreg._utils._get_device_index("openreg:1", True) == 1
    assert torch.openreg._get_generator(torch.device("openreg", 1)).device.index == 1


def test_unknown_attribute_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        torch.openreg.nonsense  # noqa: B018


def test_device_module_is_found_for_device_and_accelerator() -> None:
    assert torch.get_device_module("openreg:1") is torch.openreg
    assert torch.get_device_module() is torch.openreg


def test_enumerations_know_the_name() -> None:
    assert ProfilerActivity.OPENREG is ProfilerActivity.PrivateUse1
    assert torch._C._autograd.DeviceType.OPENREG.name == "OPENREG"
