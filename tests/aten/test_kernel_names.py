# SPDX-License-Identifier: BSD-3-Clause
"""Errors about dtypes without a kernel name the device and not the CPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

CALLS: dict[str, tuple[Callable[[Tensor], object], str]] = {
    "hardshrink": (lambda x: torch.hardshrink(x.long()), "hardshrink_{}"),
    "lgamma": (lambda x: x.to(torch.complex64).lgamma(), "lgamma_vml_{}"),
    "mm": (lambda x: x.bool() @ x.bool(), "addmm_impl_{}_"),
    "svd": (torch.linalg.svd, "linalg_svd_{}"),
    "geqrf": (torch.geqrf, "geqrf_{}"),
    "qr": (torch.linalg.qr, "geqrf_{}"),
    "eig": (torch.linalg.eig, "linalg_eig_out_{}"),
}


@pytest.mark.parametrize("name", CALLS)
def test_refused_dtype_names_the_device(device: str, name: str) -> None:
    call, kernel = CALLS[name]
    x = torch.eye(3, dtype=torch.half)
    with pytest.raises(NotImplementedError) as on_cpu:
        call(x)
    with pytest.raises(NotImplementedError) as on_device:
        call(x.to(device))
    names = kernel.format("cpu"), kernel.format(device)
    assert f'"{names[0]}" not implemented for' in str(on_cpu.value)
    assert str(on_device.value).splitlines()[0] == (
        str(on_cpu.value).splitlines()[0].replace(*names)
    )


def test_other_errors_keep_their_words(device: str) -> None:
    x = torch.eye(3, dtype=torch.half, device=device)
    with pytest.raises(RuntimeError, match="Low precision dtypes not supported"):
        torch.linalg.inv(x)
