# SPDX-License-Identifier: BSD-3-Clause
"""Quantized networks, and fake quantization during training."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.ao import quantization

from .examples import KINDS, WARNINGS, scales, values, zero_points

pytestmark = WARNINGS


class Digits(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.quantize = quantization.QuantStub()
        self.convolution = nn.Conv2d(1, 4, 3)
        self.linear = nn.Linear(4 * 6 * 6, 5)
        self.dequantize = quantization.DeQuantStub()

    def forward(self, x: Tensor) -> Tensor:
        x = self.convolution(self.quantize(x)).relu()
        return self.dequantize(self.linear(x.flatten(1)))


@pytest.mark.differs_in_process("messages")
def test_network_is_quantized_on_the_device(device, same, engine) -> None:
    x = torch.randn(3, 1, 8, 8)
    results = []
    for place in ("cpu", device):
        torch.manual_seed(0)
        network = Digits().eval().to(place)
        network.qconfig = quantization.get_default_qconfig(engine)
        quantization.prepare(network, inplace=True)
        network(x.to(place))
        quantization.convert(network, inplace=True)
        assert isinstance(network.linear, torch.ao.nn.quantized.Linear)
        results.append(network(x.to(place)))
    same(results[1], results[0])


@pytest.mark.differs_in_process("messages")
def test_network_quantized_on_the_cpu_runs_on_the_device(device, same) -> None:
    x = torch.randn(3, 1, 8, 8)
    network = Digits().eval()
    network.qconfig = quantization.get_default_qconfig("x86")
    quantization.prepare(network, inplace=True)
    network(x)
    quantization.convert(network, inplace=True)
    expected = network(x)
    same(network.to(device)(x.to(device)), expected)


@pytest.mark.differs_in_process("messages")
def test_weights_are_quantized_and_activations_as_they_come(device, same) -> None:
    results = []
    for place in ("cpu", device):
        torch.manual_seed(0)
        network = nn.Sequential(nn.Linear(6, 5), nn.LSTM(5, 4)).to(place)
        network = quantization.quantize_dynamic(network)
        output, (hidden, cell) = network(torch.ones(3, 2, 6, device=place))
        results.append([output.detach(), hidden.detach(), cell.detach()])
    same(results[1], results[0])


FAKE: list[Callable[[Tensor, Tensor, Tensor], Tensor]] = [
    lambda x, s, z: torch.fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 255),
    lambda x, s, z: torch.fake_quantize_per_tensor_affine(
        x, s[0].detach(), z[1], 0, 255
    ),
    lambda x, s, z: torch.fake_quantize_per_channel_affine(x, s.detach(), z, 0, 0, 15),
    lambda x, s, z: torch._fake_quantize_learnable_per_tensor_affine(
        x, s[:1], z[:1].float(), 0, 15, 1.0
    ),
    lambda x, s, z: torch._fake_quantize_learnable_per_channel_affine(
        x, s, z.float(), 0, 0, 15, 1.0
    ),
]


@pytest.mark.parametrize("function", FAKE)
@pytest.mark.parametrize("shape", [(4, 6), (4, 0), (4, 3, 2)], ids=str)
def test_fake_quantization_and_its_gradients(device, same, function, shape) -> None:
    results = []
    for place in ("cpu", device):
        torch.manual_seed(0)
        x = torch.randn(shape).to(place).requires_grad_()
        s = scales().to(place).requires_grad_()
        made = function(x, s, zero_points().int().to(place))
        (made * torch.arange(made.numel(), device=place).view_as(made)).sum().backward()
        grad = torch.zeros_like(s) if s.grad is None else s.grad
        results.append([made.detach(), x.grad, grad])
    same(results[1], results[0])


def test_fake_quantization_observes_while_it_trains(device, same) -> None:
    results = []
    for place in ("cpu", device):
        torch.manual_seed(0)
        layer = quantization.default_fused_act_fake_quant().to(place)
        x = torch.randn(4, 6).to(place).requires_grad_()
        made = layer(x * 3)
        made.sum().backward()
        results.append([made.detach(), x.grad, layer.scale, layer.zero_point])
    same(results[1], results[0])


def test_quantized_tensors_leave_no_memory_behind(device, settled_memory) -> None:
    before = settled_memory(0)
    x = KINDS["per_channel"](values().to(device))
    y = x.clone()[1:].dequantize()
    z = torch.relu(KINDS["per_tensor"](values().to(device)))
    assert settled_memory(0) > before
    del x, y, z
    assert settled_memory(before) == before
