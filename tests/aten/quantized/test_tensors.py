# SPDX-License-Identifier: BSD-3-Clause
"""New quantized tensors, copies and views."""

from __future__ import annotations

import copy
import itertools

import pytest
import torch
from torch import Tensor

from support.isolation import marked

from .examples import KINDS, WARNINGS, scales, values, zero_points

pytestmark = WARNINGS


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


@pytest.mark.parametrize(
    "kind", marked(KINDS, {"per_channel": "messages", "float_qparams": "messages"})
)
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


@pytest.mark.parametrize("dtype", [torch.quint8, torch.qint8, torch.qint32])
@pytest.mark.parametrize("shape", [(3, 4), (130, 170)])
def test_transposed_tensors_are_copied_between_devices_and_the_host(
    dtype: torch.dtype, shape: tuple[int, int]
) -> None:
    numbers = torch.arange(shape[0] * shape[1]).remainder(100).float().reshape(shape)
    cpu = torch.quantize_per_tensor(numbers, 1.0, 0, dtype).t()
    there = cpu.t().to("privateuseone").t()
    there_too = there.to("privateuseone:1")
    for moved in (there.cpu(), there_too.cpu(), there.contiguous().cpu()):
        assert moved.qscheme() == cpu.qscheme()
        assert torch.equal(moved.int_repr(), cpu.int_repr())
    target = torch.quantize_per_tensor(torch.zeros_like(numbers.t()), 2.0, 1, dtype)
    for device in ("privateuseone:0", "privateuseone:1", "cpu"):
        assert torch.equal(
            target.to(device).copy_(there).cpu().dequantize(), numbers.t()
        )


def test_copy_to_a_tensor_that_is_not_quantized_is_refused() -> None:
    quantized = torch.quantize_per_tensor(torch.ones(3), 1.0, 0, torch.quint8)
    here, there = "cpu", "privateuseone"
    for dst, src in ((here, there), (there, here), (there, there)):
        with pytest.raises(RuntimeError, match="Copying from quantized Tensor to non-"):
            torch.empty(3, device=dst).copy_(quantized.to(src))


def test_tensor_is_quantized_behind_work_of_its_stream(
    device: str, engine: str
) -> None:
    x = torch.ones(500, 500, device=device)
    for _ in range(3):
        later = x
        for _ in range(50):
            later = later @ x
        quantized = torch.quantize_per_tensor(x, 1.0, 0, torch.quint8)
        assert quantized.is_quantized
        assert torch.equal(quantized.cpu().dequantize(), x.cpu())
