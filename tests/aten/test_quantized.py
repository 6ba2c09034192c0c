# SPDX-License-Identifier: BSD-3-Clause
"""Quantized tensors run the CPU's kernels on the device's bytes and parameters."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.ao import quantization

from openreg_aten import _C

quantized = torch.ops.quantized
pytestmark = [
    pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor, torch.quantize_per"),
    pytest.mark.filterwarnings("ignore:torch.ao.quantization is deprecated"),
    pytest.mark.filterwarnings("ignore:Please use quant_min and quant_max"),
    pytest.mark.filterwarnings("ignore:must run observer before"),
    pytest.mark.filterwarnings("ignore:TypedStorage is deprecated"),
    pytest.mark.filterwarnings("ignore:Default qconfig of oneDNN"),
]

DTYPES = [torch.quint8, torch.qint8, torch.qint32]
SHAPES = [(), (0,), (7,), (4, 0), (4, 6), (2, 4, 5, 3)]
CHANNELS = (torch.per_channel_affine, torch.per_channel_affine_float_qparams)
# What a tensor is quantized to, by name. Each has four channels in its first dimension.
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


@pytest.fixture
def alike(same: Compare) -> Compare:
    """Gives a function that compares results with the CPU's: bytes and parameters."""

    def compare(result: Any, expected: Any) -> None:
        if isinstance(expected, (list, tuple)):
            assert len(result) == len(expected)
            for one, other in zip(result, expected, strict=True):
                compare(one, other)
            return
        if not (isinstance(expected, Tensor) and expected.is_quantized):
            same(result, expected)
            return
        assert result.dtype == expected.dtype
        assert result.qscheme() == expected.qscheme()
        assert result.stride() == expected.stride()
        same(parameters(result), parameters(expected))
        same(result.int_repr(), expected.int_repr())

    return compare


@pytest.fixture
def agree(device: str, alike: Compare) -> Callable[..., None]:
    """Gives a function that calls another on the CPU and on the device.

    The results have to be the same, or the messages of what is raised.
    """

    def attempt(function: Callable[..., Any], args: list[Any]) -> Any:
        try:
            return function(*args)
        except (RuntimeError, NotImplementedError, ValueError, IndexError) as error:
            return error

    def check(function: Callable[..., Any], *args: Any) -> None:
        expected = attempt(function, list(args))
        moved = [each.to(device) if isinstance(each, Tensor) else each for each in args]
        result = attempt(function, moved)
        if isinstance(expected, Exception):
            assert type(result) is type(expected)
            if "with arguments from the 'QuantizedCPU' backend" in str(expected):
                assert "none for QuantizedCPU that the device could run" in str(result)
            else:
                assert str(result) == str(expected)
        else:
            if isinstance(result, Exception):
                raise result
            alike(result, expected)

    return check


@pytest.fixture(params=["x86", "onednn", "qnnpack"])
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    """Selects the library behind PyTorch's quantized kernels."""
    if request.param not in torch.backends.quantized.supported_engines:
        pytest.skip(f"this torch is built without {request.param}")
    before = torch.backends.quantized.engine
    torch.backends.quantized.engine = request.param
    yield request.param
    torch.backends.quantized.engine = before


# ---- quantization and its inverse ------------------------------------------


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


@pytest.mark.parametrize("dtype", [torch.quint4x2, torch.quint2x4], ids=str)
def test_several_numbers_share_a_byte(agree, engine, dtype) -> None:
    agree(lambda x: torch.quantize_per_tensor(x, 0.5, 1, dtype).dequantize(), values())
    agree(
        lambda x, s, z: torch.quantize_per_channel(x, s, z, 0, dtype).dequantize(),
        values(),
        scales(),
        zero_points().float(),
    )


def test_layout_of_what_is_quantized_is_kept(agree) -> None:
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


@pytest.mark.parametrize("kind", KINDS)
def test_quantizers_functions_are_asked_of_the_device(device: str, kind: str) -> None:
    before = {(name, path): n for name, path, n in _C.path_counts()}
    _C.count_paths(1)
    try:
        KINDS[kind](values().to(device)).dequantize()
    finally:
        _C.count_paths(-1)
    after = {(name, path): n for name, path, n in _C.path_counts()}
    op = "tensor" if kind == "per_tensor" else "channel"
    for name in (f"aten::quantize_per_{op}", "aten::dequantize.self"):
        assert after[name, "stub"] - before.get((name, "stub"), 0) == 1
        assert after.get((name, "boxed"), 0) == before.get((name, "boxed"), 0)


# ---- new tensors, copies and views -----------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_quantized_tensor_goes_to_devices_and_back(device, alike, engine, kind) -> None:
    x = KINDS[kind](values())
    moved = x.to(device)
    alike(moved, x)
    assert moved.cpu().device.type == "cpu"
    alike(moved.cpu().to(device), x)
    other = moved.to(f"{device}:1")
    assert other.device.index == 1
    alike(other, x)
    alike(other.dequantize(), x.dequantize())
    if kind != "per_tensor":
        assert other.q_per_channel_scales().device.index == 1
        assert moved.cpu().q_per_channel_scales().device.type == "cpu"


def test_tensor_with_gaps_goes_to_the_host(device: str) -> None:
    x = KINDS["per_tensor"](values())
    for view in (
        lambda t: t[:, ::2],
        lambda t: t.t()[1:4],
        lambda t: t[:1].expand(4, 6),
    ):
        moved = view(x.to(device)).cpu()
        assert moved.device.type == "cpu"
        assert moved.equal(view(x))
        assert moved.q_scale() == x.q_scale()


def test_copies_take_numbers_and_quantizer(device, alike) -> None:
    source = torch.quantize_per_tensor(values() * 2, 0.3, 1, torch.quint8)
    for to, of in itertools.product(("cpu", device), repeat=2):
        target = KINDS["per_tensor"](values()).to(to)
        target.copy_(source.to(of))
        alike(target.to(device), source)
    target = KINDS["per_channel"](values() * 0).to(device)
    x = KINDS["per_channel"](values())
    target.copy_(x)
    alike(target, x)
    del x
    alike(target, KINDS["per_channel"](values()))
    host = KINDS["per_channel"](values() * 0).copy_(target)
    assert host.q_per_channel_scales().device.type == "cpu"
    del target
    alike(host.to(device), KINDS["per_channel"](values()))


def test_copy_quantizes_floats_and_refuses_to_dequantize(device, alike) -> None:
    for kind in ("per_tensor", "per_channel"):
        expected = KINDS[kind](values() * 0).copy_(values())
        for of in ("cpu", device):
            target = KINDS[kind](values() * 0).to(device)
            alike(target.copy_(values().to(of)), expected)
    host = KINDS["per_tensor"](values() * 0).copy_(values().to(device))
    alike(host.to(device), KINDS["per_tensor"](values()))
    for to, of in ((device, device), (device, "cpu"), ("cpu", device)):
        with pytest.raises(RuntimeError, match="please use dequantize"):
            torch.zeros(4, 6, device=to).copy_(KINDS["per_tensor"](values()).to(of))


def test_copies_between_different_quantized_types_are_refused(device) -> None:
    x = KINDS["per_tensor"](values()).to(device)
    with pytest.raises(RuntimeError, match="same qscheme"):
        x.copy_(KINDS["per_channel"](values()))
    with pytest.raises(RuntimeError, match="same dtype, got QUInt8 and QInt8"):
        x.copy_(torch.quantize_per_tensor(values(), 0.1, 3, torch.qint8))
    with pytest.raises(RuntimeError, match="must match the size"):
        x.copy_(torch.quantize_per_tensor(values()[:2], 0.2, 4, torch.quint8))
    assert (x.q_scale(), x.q_zero_point()) == (0.1, 3)


def test_new_tensors_have_the_quantizer_that_is_asked_for(
    device, alike, engine
) -> None:
    def filled(place: str) -> list[Tensor]:
        x = {kind: make(values()).to(place) for kind, make in KINDS.items()}
        made = [
            torch._empty_affine_quantized(
                [2, 3], scale=0.2, zero_point=5, dtype=torch.qint8, device=place
            ),
            torch._empty_per_channel_affine_quantized(
                [4, 3],
                scales=scales().to(place),
                zero_points=zero_points(),
                axis=0,
                dtype=torch.quint8,
                device=place,
            ),
            torch.empty_quantized([2, 3], x["per_tensor"], device=place),
            torch.empty_quantized([4, 2], x["per_channel"], device=place),
            torch.empty_like(x["per_tensor"]),
            torch.empty_like(x["per_channel"]),
        ]
        for each in made:
            assert each.device.type == torch.device(place).type
            each.copy_(torch.ones(each.shape))
        return made

    alike(filled(device), filled("cpu"))
    on_other = torch._empty_affine_quantized(
        [2], scale=1.0, zero_point=0, dtype=torch.qint8, device=f"{device}:1"
    )
    assert on_other.device.index == 1
    with pytest.raises(RuntimeError, match="requires quantized dtype"):
        torch._empty_affine_quantized([2], scale=1.0, zero_point=0, device=device)


@pytest.mark.parametrize("kind", KINDS)
def test_views_and_indexing(agree, kind) -> None:
    x = KINDS[kind](values())
    for function in (
        lambda t: t[1:3],
        lambda t: t[2],
        lambda t: t[:, ::2],
        lambda t: t.t(),
        lambda t: t.view(2, 12),
        lambda t: t.view(4, 2, 3),
        lambda t: t.unsqueeze(0),
        lambda t: t.unsqueeze(1).squeeze(1),
        lambda t: t.unsqueeze(1).squeeze((0, 1)),
        lambda t: t.unsqueeze(0).squeeze(),
        lambda t: t.permute(1, 0).dequantize(),
        lambda t: t.flatten(),
        lambda t: t.unfold(1, 2, 2),
        lambda t: list(t.unbind(0)),
        lambda t: list(t.split(2)),
        lambda t: t[:1].expand(4, 6),
        lambda t: t.t().contiguous(),
        lambda t: t[torch.tensor([1, 2], device=t.device)],
        lambda t: t[torch.tensor([1, 2])],
        lambda t: t[t.int_repr() > 3],
        lambda t: t.index_select(1, torch.tensor([1, 2], device=t.device)),
        lambda t: t.clone(),
        lambda t: copy.deepcopy(t),
        lambda t: torch.cat([t, t]),
        lambda t: torch.stack([t, t], 1),
        lambda t: t.equal(t.clone()),
        lambda t: t.equal(t.dequantize()),
        lambda t: t.clone().resize_(2, 3).int_repr().shape,
        lambda t: t.clone().fill_(0.7),
        lambda t: t.detach(),
    ):
        agree(function, x)


def test_writes_through_views_reach_the_tensor(agree) -> None:
    def write(t: Tensor) -> Tensor:
        t = t.clone()
        t[1].fill_(0.4)
        t[2:4, 1].copy_(torch.ones(2, device=t.device))
        t[0] = torch.arange(6.0, device=t.device)
        t.view(-1)[:3].relu_()
        return t

    agree(write, KINDS["per_tensor"](values()))


def test_quantizer_is_shared_as_on_the_cpu(device: str) -> None:
    x = KINDS["per_channel"](values().to(device))
    pointer = x.q_per_channel_scales().data_ptr()
    for view in (x.detach(), x.view(2, 2, 6), x.clone()):
        assert view.q_per_channel_scales().data_ptr() == pointer
    x.q_per_channel_scales().mul_(2)
    assert x.dequantize().cpu().equal(2 * KINDS["per_channel"](values()).dequantize())


def test_equality_looks_at_numbers_and_quantizer(device: str) -> None:
    x = KINDS["per_channel"](values()).to(device)
    assert x.equal(KINDS["per_channel"](values()).to(device))
    assert not x.equal(KINDS["per_tensor"](values()).to(device))
    assert not x.equal(KINDS["per_channel"](values() + 1).to(device))
    other = x.clone().to(f"{device}:1")
    with pytest.raises(RuntimeError, match="same device"):
        x.equal(other)
    with pytest.raises(RuntimeError, match="same device"):
        x.equal(x.cpu())


@pytest.mark.parametrize("kind", KINDS)
def test_repr_shows_numbers_and_quantizer(device: str, kind: str) -> None:
    x = KINDS[kind](values()).to(device)
    shown, expected = (" ".join(repr(each).split()) for each in (x, x.cpu()))
    assert shown.count(f", device='{device}:0'") == 1 + 2 * (kind != "per_tensor")
    assert shown.replace(f", device='{device}:0'", "") == expected


# ---- operators -------------------------------------------------------------

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


@pytest.mark.parametrize("per_channel", [False, True])
def test_linear_layers_take_packed_weights(agree, engine, per_channel) -> None:
    x = torch.quantize_per_tensor(torch.randn(5, 8), 0.05, 30, torch.quint8)
    w, b = weight(4, 8, per_channel=per_channel), torch.randn(4)
    pack = quantized.linear_prepack
    agree(lambda x, w, b: quantized.linear(x, pack(w, b), 0.1, 3), x, w, b)
    agree(lambda x, w: quantized.linear(x, pack(w, None), 0.1, 3), x, w)
    agree(lambda x, w, b: quantized.linear_relu(x, pack(w, b), 0.1, 3), x, w, b)
    agree(lambda x, w, b: quantized.linear_dynamic(x.dequantize(), pack(w, b)), x, w, b)


@pytest.mark.parametrize("per_channel", [False, True])
def test_convolutions_take_packed_weights(agree, engine, per_channel) -> None:
    w, b = weight(6, 4, 3, 3, per_channel=per_channel), torch.randn(6)

    def pack(w: Tensor, b: Tensor) -> Any:
        return quantized.conv2d_prepack(w, b, [1, 1], [1, 1], [1, 1], 1)

    agree(lambda x, w, b: quantized.conv2d(x, pack(w, b), 0.1, 3), image(), w, b)
    agree(lambda x, w, b: quantized.conv2d_relu(x, pack(w, b), 0.1, 3), image(), w, b)


def test_packed_weights_are_the_cpus_and_outlive_what_they_are_made_of(
    device, engine, settled_memory
) -> None:
    w, b = weight(4, 8, per_channel=True), torch.randn(4)
    before = settled_memory(0)
    packed = quantized.linear_prepack(w.to(device), b.to(device))
    assert settled_memory(before) == before
    halves = quantized.linear_prepack(w.to(device)[:, ::2], b.to(device))
    assert quantized.linear_unpack(halves)[0].equal(w[:, ::2])
    junk = torch.full((64,), 7.0, device=device)  # where weight and bias were
    unpacked, bias = quantized.linear_unpack(packed)
    assert unpacked.device.type == bias.device.type == "cpu"
    assert unpacked.equal(w)
    assert bias.equal(b)
    x = torch.quantize_per_tensor(torch.randn(5, 8), 0.05, 30, torch.quint8)
    expected = quantized.linear(x, quantized.linear_prepack(w, b), 0.1, 3)
    assert quantized.linear(x.to(device), packed, 0.1, 3).cpu().equal(expected)
    assert junk.sum().item() == 448


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


# ---- layers ----------------------------------------------------------------


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


def test_network_quantized_on_the_cpu_runs_on_the_device(device, same) -> None:
    x = torch.randn(3, 1, 8, 8)
    network = Digits().eval()
    network.qconfig = quantization.get_default_qconfig("x86")
    quantization.prepare(network, inplace=True)
    network(x)
    quantization.convert(network, inplace=True)
    expected = network(x)
    same(network.to(device)(x.to(device)), expected)


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
