# SPDX-License-Identifier: BSD-3-Clause
"""Quantized tensors of every kind, with the parameters that they are made from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

DTYPES = [torch.quint8, torch.qint8, torch.qint32]
SHAPES = [(), (0,), (7,), (4, 0), (4, 6), (2, 4, 5, 3)]
CHANNELS = (torch.per_channel_affine, torch.per_channel_affine_float_qparams)
# The quantized tensors by name. Each has four channels in its first dimension.
KINDS: dict[str, Callable[[Tensor], Tensor]] = {
    "per_tensor": lambda x: torch.quantize_per_tensor(x, 0.1, 3, torch.quint8),
    "per_channel": lambda x: torch.quantize_per_channel(
        x, scales().to(x.device), zero_points().to(x.device), 0, torch.qint8
    ),
    "float_qparams": lambda x: torch.quantize_per_channel(
        x, scales().to(x.device), zero_points().float().to(x.device), 0, torch.quint8
    ),
}
Compare = Callable[[Any, Any], None]


def scales() -> Tensor:
    return torch.tensor([0.1, 0.25, 0.5, 0.02])


def zero_points() -> Tensor:
    return torch.tensor([0, 4, 1, 3])


def values() -> Tensor:
    return torch.linspace(-2, 3, 24).view(4, 6)


def image(zero_point: int = 100) -> Tensor:
    x = torch.randn(2, 4, 8, 6)
    return torch.quantize_per_tensor(x, 0.05, zero_point, torch.quint8)


def parameters(tensor: Tensor) -> list[Any]:
    if tensor.qscheme() in CHANNELS:
        components = [tensor.q_per_channel_scales(), tensor.q_per_channel_zero_points()]
        return [*components, tensor.q_per_channel_axis()]
    return [tensor.q_scale(), tensor.q_zero_point()]


# PyTorch warns about its own names.
WARNINGS = [
    pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor, torch.quantize_per"),
    pytest.mark.filterwarnings("ignore:torch.ao.quantization is deprecated"),
    pytest.mark.filterwarnings("ignore:Please use quant_min and quant_max"),
    pytest.mark.filterwarnings("ignore:must run observer before"),
    pytest.mark.filterwarnings("ignore:TypedStorage is deprecated"),
    pytest.mark.filterwarnings("ignore:Default qconfig of oneDNN"),
]
