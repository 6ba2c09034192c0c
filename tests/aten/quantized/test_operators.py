# SPDX-License-Identifier: BSD-3-Clause
"""Operators on quantized tensors, and packed weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from .examples import KINDS, WARNINGS, image, values

pytestmark = WARNINGS
quantized = torch.ops.quantized

POINTWISE: list[Callable[[Tensor], Any]] = [
    torch.relu,
    torch.sigmoid,
    torch.tanh,
    lambda t: F.hardtanh(t, -0.5, 0.5),
    lambda t: F.hardtanh_(t.clone(), -0.5, 0.5),
    lambda t: F.leaky_relu(t, 0.1),
    F.gelu,
    F.hardsigmoid,
    lambda t: F.threshold(t, 0.1, 0.2),
    lambda t: t.clamp(-0.2, 0.3),
    lambda t: t.sort(-1),
    lambda t: t.topk(3),
    lambda t: t.max(),
    lambda t: t.min(-1),
    lambda t: t.mean(-1),
    lambda t: t.std(-1),
    lambda t: t.flip(0),
    lambda t: t == 0.1,
    lambda t: t < t.flip(0),
    lambda t: t.masked_fill(t.int_repr() > 5, 0.5),
    lambda t: t.index_put((torch.tensor([0, 1]),), torch.tensor(0.3, device=t.device)),
    lambda t: quantized.relu6(t),
    lambda t: quantized.hardswish(t, 0.1, 3),
    lambda t: quantized.elu(t, 0.1, 3),
    lambda t: quantized.softmax(t, -1, 0.1, 3),
    lambda t: quantized.add_scalar(t, 0.5),
    lambda t: quantized.mul_scalar(t, 0.5),
    lambda t: torch.index_select(
        t, 0, torch.tensor([1, 3], device=t.device), out=t[:2].clone()
    ),
    lambda t: torch.cat([t, t], out=torch.cat([t, t])),
    lambda t: torch.mean(t, -1, out=torch.empty_like(t)),
    lambda t: torch.std(t, -1, out=torch.empty_like(t)),
]
IMAGES: list[Callable[[Tensor], Any]] = [
    lambda t: F.max_pool2d(t, 2),
    lambda t: F.avg_pool2d(t, 2),
    lambda t: F.adaptive_avg_pool2d(t, 3),
    lambda t: F.interpolate(t, scale_factor=2),
    lambda t: F.interpolate(t, scale_factor=2, mode="bilinear"),
    lambda t: F.pad(t, (1, 1, 1, 1), mode="reflect"),
    lambda t: torch.channel_shuffle(t, 2),
    lambda t: quantized.max_pool2d(t, [2, 2], [2, 2], [0, 0], [1, 1], False),
    lambda t: quantized.batch_norm2d(t, *norm(t, 4), 1e-5, 0.1, 3),
    lambda t: quantized.group_norm(t, 2, *norm(t, 2), 1e-5, 0.1, 3),
    lambda t: quantized.instance_norm(t, *norm(t, 2), 1e-5, 0.1, 3),
]


def norm(like: Tensor, count: int) -> list[Tensor]:
    """Weight and bias of four channels; with count 4 also mean and variance."""
    ramp = torch.linspace(0.5, 1.5, 4, device=like.device)
    return [ramp, ramp - 1, ramp - 1, ramp][:count]


@pytest.mark.parametrize("dtype", [torch.quint8, torch.qint8], ids=str)
def test_operators_give_the_numbers_of_the_cpu(agree, dtype) -> None:
    x = torch.quantize_per_tensor(torch.randn(5, 7), 0.05, 3, dtype)
    for function in POINTWISE:
        agree(function, x)


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_operators_on_images_give_the_numbers_of_the_cpu(agree, layout) -> None:
    for function in IMAGES:
        agree(lambda t, f=function: f(t.contiguous(memory_format=layout)), image())


def test_operators_on_two_tensors_give_the_numbers_of_the_cpu(agree, engine) -> None:
    a = torch.quantize_per_tensor(torch.randn(5, 7), 0.05, 3, torch.quint8)
    b = torch.quantize_per_tensor(torch.randn(5, 7), 0.1, 9, torch.quint8)
    for op in (quantized.add, quantized.add_relu, quantized.mul, quantized.mul_relu):
        agree(lambda a, b, op=op: op(a, b, 0.1, 3), a, b)
    agree(lambda a, b: quantized.cat([a, b], 0, 0.1, 3), a, b)
    agree(lambda a, b: quantized.cat_relu([a, b], 1, 0.1, 3), a, b)
    agree(lambda a, b: quantized.add_out(a, b, torch.empty_like(a)), a, b)


def test_tensors_of_host_and_device_do_not_mix(device: str) -> None:
    x = KINDS["per_tensor"](values())
    with pytest.raises(RuntimeError, match="same device"):
        quantized.add(x.to(device), x, 0.1, 3)


def weight(*shape: int, per_channel: bool) -> Tensor:
    x = torch.randn(shape)
    if not per_channel:
        return torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)
    channels = torch.linspace(0.05, 0.2, shape[0])
    zeros = torch.zeros(shape[0], dtype=torch.long)
    return torch.quantize_per_channel(x, channels, zeros, 0, torch.qint8)


@pytest.mark.differs_in_process("messages")
@pytest.mark.parametrize("per_channel", [False, True])
def test_linear_layers_take_packed_weights(agree, engine, per_channel) -> None:
    x = torch.quantize_per_tensor(torch.randn(5, 8), 0.05, 30, torch.quint8)
    w, b = weight(4, 8, per_channel=per_channel), torch.randn(4)
    pack = quantized.linear_prepack
    agree(lambda x, w, b: quantized.linear(x, pack(w, b), 0.1, 3), x, w, b)
    agree(lambda x, w: quantized.linear(x, pack(w, None), 0.1, 3), x, w)
    agree(lambda x, w, b: quantized.linear_relu(x, pack(w, b), 0.1, 3), x, w, b)
    agree(lambda x, w, b: quantized.linear_dynamic(x.dequantize(), pack(w, b)), x, w, b)


@pytest.mark.differs_in_process("messages")
@pytest.mark.parametrize("per_channel", [False, True])
def test_convolutions_take_packed_weights(agree, engine, per_channel) -> None:
    w, b = weight(6, 4, 3, 3, per_channel=per_channel), torch.randn(6)

    def pack(w: Tensor, b: Tensor) -> Any:
        return quantized.conv2d_prepack(w, b, [1, 1], [1, 1], [1, 1], 1)

    agree(lambda x, w, b: quantized.conv2d(x, pack(w, b), 0.1, 3), image(), w, b)
    agree(lambda x, w, b: quantized.conv2d_relu(x, pack(w, b), 0.1, 3), image(), w, b)


@pytest.mark.differs_in_process("messages")
def test_packed_weights_are_on_the_cpu_and_outlive_their_sources(
    device, engine, settled_memory
) -> None:
    w, b = weight(4, 8, per_channel=True), torch.randn(4)
    before = settled_memory(0)
    packed = quantized.linear_prepack(w.to(device), b.to(device))
    assert settled_memory(before) == before
    halves = quantized.linear_prepack(w.to(device)[:, ::2], b.to(device))
    assert quantized.linear_unpack(halves)[0].equal(w[:, ::2])
    # Probably at the old addresses of weight and bias.
    junk = torch.full((64,), 7.0, device=device)
    unpacked, bias = quantized.linear_unpack(packed)
    assert unpacked.device.type == bias.device.type == "cpu"
    assert unpacked.equal(w)
    assert bias.equal(b)
    x = torch.quantize_per_tensor(torch.randn(5, 8), 0.05, 30, torch.quint8)
    expected = quantized.linear(x, quantized.linear_prepack(w, b), 0.1, 3)
    assert quantized.linear(x.to(device), packed, 0.1, 3).cpu().equal(expected)
    assert junk.sum().item() == 448


@pytest.mark.differs_in_process("messages")
def test_embeddings_take_packed_weights(agree) -> None:
    w = torch.quantize_per_channel(
        torch.randn(10, 12), torch.full((10,), 0.1), torch.rand(10), 0, torch.quint8
    )
    indices, offsets = torch.tensor([1, 4, 9]), torch.tensor([0, 2])
    pack = quantized.embedding_bag_prepack
    agree(lambda w, i: quantized.embedding_byte(pack(w), i), w, indices)
    agree(
        lambda w, i, o: quantized.embedding_bag_byte(pack(w), i, o, False, 0),
        w,
        indices,
        offsets,
    )


@pytest.mark.differs_in_process("messages")
@pytest.mark.filterwarnings("ignore:.*fbgemm_.* is deprecated")
def test_weights_packed_in_tensors_stay_on_the_host(device, agree) -> None:
    w, b = torch.randn(4, 8), torch.randn(4)
    agree(
        lambda x, w, b: torch.fbgemm_linear_fp16_weight(
            x, torch.fbgemm_pack_gemm_matrix_fp16(w), b
        ),
        torch.randn(5, 8),
        w,
        b,
    )

    def eight_bits(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        w, offsets, scale, zero_point = torch.fbgemm_linear_quantize_weight(w)
        packed = torch.fbgemm_pack_quantized_matrix(w)
        assert packed.device.type == "cpu"
        return torch.fbgemm_linear_int8_weight(
            x, w, packed, offsets, scale, zero_point, b
        )

    agree(eight_bits, torch.randn(5, 8), w, b)
    agree(lambda x: torch.choose_qparams_optimized(x, 24, 200, 0.16, 8), values())
