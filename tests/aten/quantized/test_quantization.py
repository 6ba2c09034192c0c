# SPDX-License-Identifier: BSD-3-Clause
"""Quantization and its inverse."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from support.paths import counted

from .examples import DTYPES, KINDS, SHAPES, WARNINGS, scales, values, zero_points

pytestmark = WARNINGS


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_float_tensor_is_quantized_and_dequantized(agree, engine, shape, dtype) -> None:
    x = torch.randn(shape) * 3
    agree(lambda x: torch.quantize_per_tensor(x, 0.05, 7, dtype), x)
    agree(lambda x: torch.quantize_per_tensor(x, 0.05, 7, dtype).dequantize(), x)
    agree(lambda x: torch.quantize_per_tensor(x, 0.05, 7, dtype).int_repr(), x)
    if x.numel() > 0:
        agree(lambda x: torch.quantize_per_tensor_dynamic(x, dtype, False), x)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("axis", [0, 1])
def test_channels_have_their_own_parameters(agree, engine, axis, dtype) -> None:
    x = torch.randn(4, 4, 3)

    def run(x: Tensor, scales: Tensor, zero_points: Tensor) -> list[Tensor]:
        made = torch.quantize_per_channel(x, scales, zero_points, axis, dtype)
        return [made, made.dequantize()]

    agree(run, x, scales(), zero_points())
    agree(run, x, scales().double(), zero_points().int())
    if dtype != torch.qint32:  # the CPU's kernel ends the process
        agree(run, x, scales(), zero_points() + 0.5)


def test_parameters_may_be_tensors(agree) -> None:
    scale, zero_point = torch.tensor(0.2), torch.tensor(3)
    agree(
        lambda x, s, z: torch.quantize_per_tensor(x, s, z, torch.qint8),
        values(),
        scale,
        zero_point,
    )
    agree(
        lambda x, s, z: torch.quantize_per_tensor([x, x * 2], s, z, torch.qint8),
        values(),
        torch.tensor([0.2, 0.3]),
        torch.tensor([3, 4]),
    )


@pytest.mark.differs_in_process("messages")
@pytest.mark.parametrize("dtype", [torch.quint4x2, torch.quint2x4], ids=str)
def test_several_numbers_share_a_byte(agree, engine, dtype) -> None:
    agree(lambda x: torch.quantize_per_tensor(x, 0.5, 1, dtype).dequantize(), values())
    agree(
        lambda x, s, z: torch.quantize_per_channel(x, s, z, 0, dtype).dequantize(),
        values(),
        scales(),
        zero_points().float(),
    )


def test_layout_of_the_quantized_tensor_is_kept(agree) -> None:
    def run(x: Tensor) -> list[Tensor]:
        made = torch.quantize_per_tensor(x, 0.05, 7, torch.quint8)
        return [made, made.dequantize()]

    agree(lambda x: run(x.t()), values())
    agree(lambda x: run(x[:, ::2]), values())
    agree(
        lambda x: run(x.contiguous(memory_format=torch.channels_last)),
        torch.randn(2, 4, 3, 5),
    )


def test_integers_become_quantized_without_a_change(agree) -> None:
    numbers = torch.randint(0, 99, (4, 5), dtype=torch.uint8)
    agree(lambda x: torch._make_per_tensor_quantized_tensor(x, 0.1, 3), numbers)
    agree(
        lambda x, s, z: torch._make_per_channel_quantized_tensor(x, s, z, 0),
        numbers,
        scales(),
        zero_points(),
    )


def test_wrong_arguments_are_refused_in_the_words_of_the_cpu(agree) -> None:
    x = values()
    agree(lambda x: torch.quantize_per_tensor(x, 0.1, 300, torch.quint8), x)
    agree(lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.float32), x)
    agree(lambda x: torch.quantize_per_tensor(x.int(), 0.1, 0, torch.qint8), x)
    agree(lambda x: torch.quantize_per_tensor_dynamic(x, torch.qint32, False), x)
    for axis, shift in ((3, 0), (1, 0), (0, 300), (0, -200)):
        agree(
            lambda x, s, z, a=axis: torch.quantize_per_channel(x, s, z, a, torch.qint8),
            x,
            scales(),
            zero_points() + shift,
        )
    q = KINDS["per_tensor"](x)
    for function in (Tensor.abs, Tensor.sum, Tensor.q_per_channel_scales, Tensor.zero_):
        agree(function, q)


def test_parameters_on_another_device_are_refused(device: str) -> None:
    for place in ("cpu", f"{device}:1"):
        with pytest.raises(RuntimeError, match="same device"):
            torch.quantize_per_channel(
                values().to(device),
                scales().to(place),
                zero_points().to(place),
                0,
                torch.qint8,
            )


@pytest.mark.differs_in_process("functions")
@pytest.mark.parametrize("kind", KINDS)
def test_quantizers_functions_are_asked_of_the_device(device: str, kind: str) -> None:
    with counted() as calls:
        KINDS[kind](values().to(device)).dequantize()
    op = "tensor" if kind == "per_tensor" else "channel"
    for name in (f"aten::quantize_per_{op}", "aten::dequantize.self"):
        assert calls[name, "stub"] == 1
        assert calls[name, "boxed"] == 0
