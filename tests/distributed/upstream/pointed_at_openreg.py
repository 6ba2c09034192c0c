# SPDX-License-Identifier: BSD-3-Clause
"""Runs PyTorch's tests of NCCL with occl on this device, by replacing names.

The unmodified tests use "cuda" and "nccl". Their modules get a wrapper of ``torch``
that replaces only CUDA's names, and groups with nccl get occl. Tests that are skipped
with NCCL are skipped here.
"""

from __future__ import annotations

import functools
import importlib
import os
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any
from unittest import mock

import torch
import torch.distributed as dist

DEVICE = "openreg"
RANKS = os.environ["UPSTREAM_RANKS"]  # of conftest.py


def renamed(value: Any) -> Any:
    """Maps CUDA devices to this project's; returns other values unchanged."""
    if isinstance(value, str) and value.partition(":")[0] == "cuda":
        return DEVICE + value.removeprefix("cuda")
    if isinstance(value, dict):  # the map_location of torch.load
        return {renamed(key): renamed(other) for key, other in value.items()}
    return value


def renaming(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(
            *map(renamed, args), **{name: renamed(kwargs[name]) for name in kwargs}
        )

    return call


class OtherTorch(ModuleType):
    """``torch`` for the modules of the tests."""

    def __init__(self) -> None:
        super().__init__("torch")
        self.cuda = torch.get_device_module(DEVICE)
        for name in ("device", "load", "ones", "randn"):
            setattr(self, name, renaming(getattr(torch, name)))

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)


class Occl(str):
    """Name of the backend, which also equals "nccl"."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return other in (str(self), "nccl")

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


def to_device(self: Any, device: Any = None, non_blocking: bool = False) -> Any:
    """``Tensor.cuda``."""
    if device is None:
        device = torch.accelerator.current_device_index()
    if isinstance(device, int):
        device = torch.device(DEVICE, device)
    return self.to(device, non_blocking=non_blocking)


def with_occl(function: Callable[..., Any]) -> Callable[..., Any]:
    """Creates a group with occl instead of nccl."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("backend") == "nccl":
            kwargs["backend"] = "occl"
        return function(*args, **kwargs)

    return call


def distributed_test() -> ModuleType:
    """Imports PyTorch's ``distributed_test`` as if NCCL were available, and renames
    it."""
    # Otherwise PyTorch skips tests that need more devices.
    assert torch.accelerator.device_count() == int(RANKS)
    os.environ.update(
        BACKEND="nccl",
        WORLD_SIZE=RANKS,
        # Seconds that a test may take; the default is 300.
        DISTRIBUTED_TESTS_DEFAULT_TIMEOUT="100",
    )
    # The decorators read these during the import of the module.
    with (
        mock.patch.object(dist, "is_nccl_available", return_value=True),
        warnings.catch_warnings(action="ignore"),  # theirs
    ):
        from torch.testing._internal import common_distributed

        module = importlib.import_module(
            "torch.testing._internal.distributed.distributed_test"
        )
    other = OtherTorch()
    for each in (common_distributed, module):
        each.torch = other  # type: ignore[attr-defined]
    common_distributed.TEST_CUDA = True  # type: ignore[attr-defined]
    for name in (
        "PROFILING_SUPPORTED_BACKENDS",
        "CUDA_PROFILING_SUPPORTED_BACKENDS",
        "SEND_RECV_PROFILING_SUPPORTED_BACKENDS",
    ):
        getattr(module, name).append("occl")
    module.autocast = functools.partial(  # type: ignore[attr-defined]
        torch.autocast, DEVICE
    )
    module.GradScaler = functools.partial(  # type: ignore[attr-defined]
        torch.amp.GradScaler, DEVICE
    )
    module.BACKEND = Occl("occl")  # type: ignore[attr-defined]
    torch.Tensor.cuda = to_device  # type: ignore[assignment, method-assign]
    for name in ("init_process_group", "new_group"):
        setattr(dist, name, with_occl(getattr(dist, name)))
    from torch.distributed import device_mesh

    device_mesh.init_device_mesh = renaming(device_mesh.init_device_mesh)
    return module
