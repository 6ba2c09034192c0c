# SPDX-License-Identifier: BSD-3-Clause
"""Modules and optimizers train on openreg with the same numbers as on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

Numbers = dict[str, Tensor]
Build = Callable[[], nn.Module]
Optimizer = Callable[..., torch.optim.Optimizer]


def sgd(parameters: object) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.05, momentum=0.9)


def fit(
    device: str,
    build: Build,
    inputs: tuple[Tensor, ...],
    optimizer: Optimizer = sgd,
    steps: int = 3,
) -> Numbers:
    """Trains a module with a squared loss and collects every number it produced."""
    torch.manual_seed(1)
    module = build().to(device)
    torch.manual_seed(2)  # dropout draws from the generator of its device
    inputs = tuple(tensor.to(device) for tensor in inputs)
    update = optimizer([p for p in module.parameters() if p.requires_grad])
    numbers: Numbers = {}
    for step in range(steps):
        update.zero_grad()
        output = module(*inputs)
        loss = output.square().mean()
        loss.backward()
        numbers |= {f"output {step}": output, f"loss {step}": loss}
        for name, parameter in module.named_parameters():
            if parameter.grad is not None:
                numbers[f"gradient of {name} {step}"] = parameter.grad.clone()
        update.step()
    numbers |= dict(module.state_dict())
    module.eval()
    with torch.no_grad():
        numbers["output in eval mode"] = module(*inputs)
    return {name: value.detach().cpu() for name, value in numbers.items()}


def assert_equal(ours: Numbers, cpu: Numbers) -> None:
    assert ours.keys() == cpu.keys()
    differing = [name for name in cpu if not torch.equal(ours[name], cpu[name])]
    assert not differing


def random_convolution(seed: int) -> tuple[Build, tuple[Tensor, ...]]:
    """Draws a convolution and its input: 1 to 3 dimensions, transposed or not."""
    generator = torch.Generator().manual_seed(seed)

    def draw(low: int, high: int) -> int:
        return int(torch.randint(low, high + 1, (), generator=generator))

    dimensions, transposed = draw(1, 3), draw(0, 1)
    groups, stride, dilation = draw(1, 3), draw(1, 2), draw(1, 2)
    kernel, bias = draw(1, 3), bool(draw(0, 1))
    padding = draw(0, kernel // 2)
    channels, out = groups * draw(1, 4), groups * draw(1, 4)
    dtype = (torch.float32, torch.float64)[draw(0, 1)]
    size = [draw(5, 9) for _ in range(dimensions)]
    build = partial(
        getattr(nn, f"Conv{'Transpose' if transposed else ''}{dimensions}d"),
        channels,
        out,
        kernel,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
        bias=bias,
        dtype=dtype,
    )
    shape = (draw(1, 4), channels, *size)
    return build, (torch.randn(shape, generator=generator, dtype=dtype),)


@pytest.mark.parametrize("seed", range(24))
def test_convolution_trains_with_cpu_numbers(device: str, seed: int) -> None:
    build, inputs = random_convolution(seed)
    assert_equal(fit(device, build, inputs), fit("cpu", build, inputs))


@pytest.mark.parametrize("seed", range(6))
def test_convolution_passes_cpu_gradient_to_its_input(device: str, seed: int) -> None:
    build, (value,) = random_convolution(100 + seed)
    gradients = []
    for place in (device, "cpu"):
        torch.manual_seed(seed)
        module = build().to(place)
        x = value.to(place).requires_grad_()
        module(x).square().sum().backward()
        gradients.append(x.grad.cpu())
    assert torch.equal(*gradients)


def test_convolution_in_channels_last_has_cpu_numbers_and_layout(device: str) -> None:
    x = torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last)
    torch.manual_seed(0)
    module = nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
    expected = module(x)
    result = module.to(device)(x.to(device))
    assert torch.equal(result.cpu(), expected)
    assert result.stride() == expected.stride()


def image(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(7))


@pytest.mark.parametrize(
    ("build", "value"),
    [
        pytest.param(lambda: nn.BatchNorm1d(6), image(5, 6), id="batch_norm_1d"),
        pytest.param(lambda: nn.BatchNorm2d(6), image(5, 6, 4, 3), id="batch_norm_2d"),
        pytest.param(
            lambda: nn.BatchNorm3d(2, momentum=None), image(3, 2, 2, 3, 4), id="cumul"
        ),
        pytest.param(
            lambda: nn.BatchNorm2d(6, track_running_stats=False),
            image(5, 6, 4, 3),
            id="batch_norm_without_statistics",
        ),
        pytest.param(lambda: nn.LayerNorm((4, 3)), image(5, 6, 4, 3), id="layer_norm"),
        pytest.param(
            lambda: nn.LayerNorm(37, bias=False), image(5, 37), id="layer_norm_odd"
        ),
        pytest.param(lambda: nn.GroupNorm(3, 6), image(5, 6, 4, 3), id="group_norm"),
        pytest.param(
            lambda: nn.InstanceNorm2d(6, affine=True),
            image(5, 6, 4, 3),
            id="instance_norm",
        ),
        pytest.param(lambda: nn.RMSNorm(12), image(5, 12), id="rms_norm"),
        pytest.param(
            lambda: nn.Sequential(nn.Linear(12, 8), nn.GELU(), nn.Linear(8, 3)),
            image(5, 12),
            id="linear",
        ),
    ],
)
def test_layer_trains_with_cpu_numbers(
    device: str, build: Build, value: Tensor
) -> None:
    assert_equal(fit(device, build, (value,)), fit("cpu", build, (value,)))


@pytest.mark.parametrize("options", [{}, {"padding_idx": 2}, {"max_norm": 1.0}])
def test_embedding_trains_with_cpu_numbers(
    device: str, options: dict[str, float]
) -> None:
    tokens = torch.randint(9, (4, 7), generator=torch.Generator().manual_seed(3))
    tokens[0, 0] = 2

    def build() -> nn.Module:
        return nn.Sequential(nn.Embedding(9, 5, **options), nn.Linear(5, 3))

    ours, cpu = fit(device, build, (tokens,)), fit("cpu", build, (tokens,))
    assert_equal(ours, cpu)
    if "padding_idx" in options:
        assert not ours["gradient of 0.weight 0"][2].any()


class Recurrent(nn.Module):
    """A recurrent network, packed on request, that returns one tensor."""

    def __init__(self, kind: type[nn.RNNBase], packed: bool, **options: object) -> None:
        super().__init__()
        self.net = kind(5, 4, **options)
        self.packed = packed

    def forward(self, x: Tensor) -> Tensor:
        """Maps (time, batch, 5), or batch first, to every output and last state."""
        if self.packed:
            lengths = [6, 2, 4]
            x = pack_padded_sequence(
                x, lengths, batch_first=self.net.batch_first, enforce_sorted=False
            )
        output, state = self.net(x)
        if isinstance(output, PackedSequence):
            output, _ = pad_packed_sequence(output, batch_first=self.net.batch_first)
        states = state if isinstance(state, tuple) else (state,)
        return torch.cat([part.flatten() for part in (output, *states)])


@pytest.mark.parametrize("packed", [False, True], ids=["padded", "packed"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"num_layers": 2, "bidirectional": True},
        {"num_layers": 2, "dropout": 0.5},
        {"bias": False, "batch_first": True},
    ],
    ids=["plain", "two_layers_both_ways", "dropout", "no_bias_batch_first"],
)
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_network_trains_with_cpu_numbers(
    device: str, kind: type[nn.RNNBase], options: dict[str, object], packed: bool
) -> None:
    x = image(3, 6, 5) if options.get("batch_first") else image(6, 3, 5)
    build = partial(Recurrent, kind, packed, **options)
    assert_equal(fit(device, build, (x,)), fit("cpu", build, (x,)))


@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")
def test_lstm_with_projection_trains_with_cpu_numbers(device: str) -> None:
    build = partial(Recurrent, nn.LSTM, False, num_layers=2, proj_size=3)
    inputs = (image(6, 3, 5),)
    assert_equal(fit(device, build, inputs), fit("cpu", build, inputs))


@pytest.mark.parametrize("mask", ["none", "causal", "boolean", "added"])
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str
)
def test_attention_has_cpu_values_and_gradients(
    device: str, dtype: torch.dtype, mask: str
) -> None:
    generator = torch.Generator().manual_seed(5)
    query, key, value, seed = (
        torch.randn(2, 3, length, 8, generator=generator).to(dtype)
        for length in (6, 9, 9, 6)
    )
    options: dict[str, object] = {"is_causal": mask == "causal"}
    if mask == "boolean":
        options["attn_mask"] = torch.rand(6, 9, generator=generator) > 0.3
    elif mask == "added":
        options["attn_mask"] = torch.randn(2, 1, 6, 9, generator=generator).to(dtype)
    results = []
    for place in (device, "cpu"):
        inputs = [x.to(place).requires_grad_() for x in (query, key, value)]
        moved = {
            name: item.to(place) if isinstance(item, Tensor) else item
            for name, item in options.items()
        }
        output = nn.functional.scaled_dot_product_attention(*inputs, **moved)
        output.backward(seed.to(place))
        results.append([output, *(x.grad for x in inputs)])
    for name, ours, cpu in zip(["output", "dq", "dk", "dv"], *results, strict=True):
        assert torch.equal(ours.cpu(), cpu), name


class SelfAttention(nn.Module):
    """Multi-head attention of a sequence over itself."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        """Maps (batch, time, 8) to the same shape."""
        return self.net(x, x, x, need_weights=False)[0]


@pytest.mark.parametrize(
    "build",
    [
        pytest.param(SelfAttention, id="multi_head_attention"),
        pytest.param(
            lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0),
            id="encoder_layer",
        ),
        pytest.param(
            lambda: nn.TransformerEncoderLayer(8, 2, 16, norm_first=True, dropout=0.1),
            id="encoder_layer_with_dropout",
        ),
    ],
)
def test_transformer_trains_with_cpu_numbers(device: str, build: Build) -> None:
    x = image(3, 5, 8)
    assert_equal(fit(device, build, (x,)), fit("cpu", build, (x,)))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"label_smoothing": 0.1},
        {"ignore_index": 2, "reduction": "sum"},
        {"weight": torch.arange(1.0, 6.0)},
    ],
    ids=["plain", "smoothed", "ignored", "weighted"],
)
def test_cross_entropy_has_cpu_value_and_gradient(
    device: str, options: dict[str, object]
) -> None:
    scores = image(6, 5, 3)
    labels = torch.randint(5, (6, 3), generator=torch.Generator().manual_seed(2))
    results = []
    for place in (device, "cpu"):
        x = scores.to(place).requires_grad_()
        loss = nn.CrossEntropyLoss(**options).to(place)(x, labels.to(place))
        loss.backward()
        results.append((loss.detach().cpu(), x.grad.cpu()))
    for ours, cpu in zip(*results, strict=True):
        assert torch.equal(ours, cpu)


@pytest.mark.parametrize(
    "way",
    [{"foreach": False, "fused": False}, {"foreach": True}, {"fused": True}],
    ids=["loop", "foreach", "fused"],
)
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        pytest.param(torch.optim.AdamW, {}, id="adamw"),
        pytest.param(
            torch.optim.AdamW, {"amsgrad": True, "maximize": True}, id="adamw_amsgrad"
        ),
        pytest.param(torch.optim.Adam, {"weight_decay": 0.1}, id="adam"),
        pytest.param(
            torch.optim.SGD, {"momentum": 0.9, "nesterov": True}, id="sgd_nesterov"
        ),
        pytest.param(torch.optim.SGD, {"weight_decay": 0.1}, id="sgd"),
    ],
)
def test_optimizer_takes_cpu_steps(
    device: str,
    kind: type[torch.optim.Optimizer],
    options: dict[str, object],
    way: dict[str, bool],
) -> None:
    def build() -> nn.Module:
        return nn.Sequential(nn.Linear(12, 7), nn.Tanh(), nn.Linear(7, 3))

    def optimizer(parameters: object) -> torch.optim.Optimizer:
        return kind(parameters, lr=0.01, **options, **way)

    inputs = (image(5, 12),)
    ours = fit(device, build, inputs, optimizer, steps=5)
    assert_equal(ours, fit("cpu", build, inputs, optimizer, steps=5))


def test_default_optimizer_takes_cpu_steps(device: str) -> None:
    results = [
        fit(place, lambda: nn.Linear(12, 7), (image(5, 12),), torch.optim.AdamW)
        for place in (device, "cpu")
    ]
    assert_equal(*results)


def test_second_device_trains_with_cpu_numbers(device: str) -> None:
    def build() -> nn.Module:
        return nn.Sequential(nn.Conv1d(6, 4, 3), nn.BatchNorm1d(4), nn.ReLU())

    inputs = (image(5, 6, 9),)
    assert_equal(fit(f"{device}:1", build, inputs), fit("cpu", build, inputs))
