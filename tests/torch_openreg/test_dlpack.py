# SPDX-License-Identifier: BSD-3-Clause
"""DLPack: capsules work, and PyTorch refuses the rest."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch.utils.dlpack import DLDeviceType, from_dlpack, to_dlpack


@pytest.mark.parametrize(
    "dtype",
    [torch.float32, torch.bfloat16, torch.int64, torch.uint8, torch.bool],
)
@pytest.mark.parametrize(
    "view",
    [lambda x: x, lambda x: x.t()[1:], lambda x: x[:0], lambda x: x[1, 2]],
    ids=["whole", "strided", "empty", "0-dim"],
)
@pytest.mark.parametrize("device", ["openreg:0", "openreg:1"])
def test_capsule_carries_the_tensor(
    dtype: torch.dtype, view: Callable[[torch.Tensor], torch.Tensor], device: str
) -> None:
    x = view(torch.arange(12, device=device).view(3, 4).to(dtype))
    y = from_dlpack(to_dlpack(x))
    assert (y.device, y.dtype, y.shape) == (x.device, x.dtype, x.shape)
    assert torch.equal(y.cpu(), x.cpu())
    if x.numel():
        assert y.data_ptr() == x.data_ptr()
        y.fill_(1)
        assert torch.equal(x.cpu(), torch.ones_like(x, device="cpu"))


def test_dlpack_method_returns_a_capsule() -> None:
    x = torch.ones(2, device="openreg:1")
    y = from_dlpack(x.__dlpack__())
    y.add_(1)
    assert x.tolist() == [2, 2]


def test_memory_is_kept_until_the_receiver_releases_it() -> None:
    before = torch.openreg.memory_allocated()
    x = torch.ones(1000, device="openreg")
    y = from_dlpack(to_dlpack(x))
    del x
    assert torch.openreg.memory_allocated() == before + 4096
    assert y.sum().item() == 1000
    del y
    assert torch.openreg.memory_allocated() == before


def test_unused_capsule_releases_the_memory() -> None:
    before = torch.openreg.memory_allocated()
    capsule = to_dlpack(torch.ones(1000, device="openreg"))
    assert torch.openreg.memory_allocated() == before + 4096
    del capsule
    assert torch.openreg.memory_allocated() == before


def test_queries_of_the_dlpack_device_are_refused_by_pytorch() -> None:
    x = torch.ones(2, device="openreg")
    for ask in (x.__dlpack_device__, lambda: torch.from_dlpack(x)):
        with pytest.raises(ValueError, match="Unknown device type openreg for Dlpack"):
            ask()


def test_numpy_refuses_the_device() -> None:
    # BufferError since NumPy 2.5
    with pytest.raises((BufferError, RuntimeError, ValueError), match="device"):
        np.from_dlpack(torch.ones(2, device="openreg"))


def test_pinned_memory_is_host_memory() -> None:
    x = torch.arange(3.0).pin_memory()
    assert x.__dlpack_device__() == (DLDeviceType.kDLCUDAHost, 0)
    for y in (torch.from_dlpack(x), np.from_dlpack(x)):
        y[0] = 7
        assert x.tolist() == [7, 1, 2]
        x[0] = 0


def test_tensor_with_a_gradient_is_refused_as_on_the_cpu() -> None:
    for device in ("cpu", "openreg"):
        x = torch.ones(2, device=device, requires_grad=True)
        with pytest.raises(BufferError, match="require gradient"):
            x.__dlpack__()
