# SPDX-License-Identifier: BSD-3-Clause
"""Checks of the devices as CUDA devices; ``test_as_cuda.py`` runs them."""

from __future__ import annotations

import copy
import gc
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.testing import assert_close

import openreg_aten

CUDA = torch.device("cuda")


def seeded(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def same(function: Callable[..., Tensor], *values: Tensor, **options: Any) -> None:
    """Compares the results and the gradients of both devices, bit by bit."""
    results = []
    for device in ("cpu", "cuda"):
        inputs = [value.to(device).detach() for value in values]
        for each in inputs:
            each.requires_grad_(each.is_floating_point())
        result = function(*inputs)
        assert result.device.type == device
        found = [result]
        if result.requires_grad:
            result.float().sum().backward()
            found += [each.grad for each in inputs if each.grad is not None]
        results.append([each.detach().cpu() for each in found])
    for expected, actual in zip(*results, strict=True):
        assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)


# ---- the device


def test_names_the_device_type() -> None:
    assert openreg_aten.device_type() == "cuda"
    x = torch.ones(2, 3, device="cuda")
    assert (x.device.type, x.is_cuda, x.device.index) == ("cuda", True, 0)
    assert torch.ones(1, device="cuda:1").device == torch.device("cuda:1")
    assert torch.accelerator.current_accelerator() == CUDA
    assert torch._C._get_privateuse1_backend_name() == "privateuseone"


def test_uses_the_keys_of_cuda() -> None:
    keys = torch._C._dispatch_keys(torch.ones(2, device="cuda", requires_grad=True))
    assert keys.has(torch._C.DispatchKey.CUDA)
    assert keys.has(torch._C.DispatchKey.AutogradCUDA)
    assert not keys.has(torch._C.DispatchKey.PrivateUse1)


def test_leaves_out_what_pytorch_offers_to_privateuse1_only() -> None:
    states = {name: on for name, *_, on in openreg_aten.mechanisms()}
    off = sorted(name for name, on in states.items() if not on)
    assert off == ["backend_meta", "profiler_observer", "storage_impl"]
    with pytest.raises(RuntimeError, match="PyTorch does not offer this to CUDA"):
        openreg_aten._C.set_storage_name(torch.ones(1, device="cuda"), "x")


def test_reports_errors_as_cuda_does() -> None:
    with pytest.raises(RuntimeError, match=r"^CUDA error: invalid device ordinal"):
        torch.ones(1, device="cuda:7")
    with pytest.raises(torch.AcceleratorError) as caught:
        torch.ones(1, device="cuda:7")
    assert caught.value.error_code == 101  # cudaErrorInvalidDevice
    with pytest.raises(NotImplementedError, match='"geqrf_cuda" not implemented'):
        torch.geqrf(torch.ones(2, 2, dtype=torch.half, device="cuda"))


def test_describes_the_simulation() -> None:
    assert "OpenReg simulated device (cuda)" in torch.__config__.show()


# ---- operators


def test_computes_as_the_cpu() -> None:
    same(lambda x, y: (x + y * 2).exp().sum(0), seeded(3, 4), seeded(3, 4, seed=1))
    same(torch.matmul, seeded(5, 6), seeded(6, 7))
    same(lambda x: x.abs().sqrt(), seeded(9))


def test_computes_derivatives_of_second_order() -> None:
    for device in ("cpu", "cuda"):
        x = torch.tensor([2.0], device=device, requires_grad=True)
        (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), x)
        assert second.item() == 12


CONVOLUTIONS = {
    "1d": (F.conv1d, (2, 4, 9), (6, 4, 3), {}),
    "2d": (F.conv2d, (2, 4, 9, 9), (6, 4, 3, 3), {"padding": 1}),
    "3d": (F.conv3d, (1, 4, 5, 5, 5), (2, 4, 3, 3, 3), {"stride": 2}),
    "depthwise": (F.conv2d, (2, 4, 9, 9), (4, 1, 3, 3), {"groups": 4}),
    "dilated": (F.conv2d, (2, 4, 9, 9), (6, 4, 3, 3), {"dilation": 2}),
    "dilated 3d": (F.conv3d, (1, 2, 7, 7, 7), (2, 2, 3, 3, 3), {"dilation": 2}),
    "transposed": (F.conv_transpose2d, (2, 4, 5, 5), (4, 6, 3, 3), {"stride": 2}),
    "transposed 3d": (F.conv_transpose3d, (1, 2, 4, 4, 4), (2, 3, 2, 2, 2), {}),
}


@pytest.mark.parametrize("kind", CONVOLUTIONS)
def test_convolves_as_the_cpu(kind: str) -> None:
    function, size, weight, options = CONVOLUTIONS[kind]
    same(
        lambda x, w: function(x, w, **options),
        seeded(*size),
        seeded(*weight, seed=1),
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_applies_softmax_with_a_cast_as_the_cpu(dtype: torch.dtype) -> None:
    x = seeded(4, 5).to(dtype)
    for function in (torch.softmax, torch.log_softmax):
        same(lambda x, f=function: f(x, 1, dtype=torch.float32), x)  # type: ignore[misc]
        out = torch.empty(0, device="cuda")
        function(x.cuda(), 1, dtype=torch.float32, out=out)
        assert_close(out.cpu(), function(x, 1, dtype=torch.float32))


def test_computes_ctc_loss_as_the_cpu() -> None:
    targets = torch.tensor([[1, 2, 3], [2, 2, 1]])
    lengths = torch.tensor([6, 6]), torch.tensor([3, 3])
    same(
        lambda x: F.ctc_loss(x.log_softmax(2), targets.to(x.device), *lengths),
        seeded(6, 2, 5),
    )


@pytest.mark.parametrize("driver", ["gesvd", "gesvdj", "gesvda"])
def test_decomposes_with_the_drivers_of_cusolver(driver: str) -> None:
    x = seeded(5, 3)
    expected = torch.linalg.svd(x)
    results = torch.linalg.svd(x.to(CUDA), driver=driver)
    out = tuple(torch.empty(0, device=CUDA) for _ in range(3))
    torch.linalg.svd(x.to(CUDA), driver=driver, out=out)
    for result, written, values in zip(results, out, expected, strict=True):
        assert_close(result.cpu(), values, rtol=0, atol=0)
        assert_close(written.cpu(), values, rtol=0, atol=0)
    values = torch.linalg.svdvals(x.to(CUDA), driver=driver)
    assert_close(values.cpu(), torch.linalg.svdvals(x), rtol=0, atol=0)


def test_rejects_an_unknown_driver_as_cuda_does() -> None:
    with pytest.raises(RuntimeError, match="unknown svd driver gelsd in svd_cusolver"):
        torch.linalg.svd(torch.ones(2, 2, device=CUDA), driver="gelsd")


@pytest.mark.parametrize("name", ["mm", "bmm", "addmm", "baddbmm"])
def test_multiplies_with_a_wider_result(name: str) -> None:
    size = (2, 3, 3) if "b" in name else (3, 3)
    operands = [seeded(*size, seed=seed).half() for seed in range(3)]
    operands = operands[0 if "add" in name else 1 :]
    function = getattr(torch, name)
    there = [each.to("cuda") for each in operands]
    expected = function(*(each.float() for each in operands))
    out = torch.empty(0, device="cuda")
    function(*there, out_dtype=torch.float32, out=out)
    for result in (function(*there, out_dtype=torch.float32), out):
        assert torch.equal(result.cpu(), expected)


@pytest.mark.parametrize("backend", ["EFFICIENT_ATTENTION", "CUDNN_ATTENTION"])
def test_computes_attention_with_a_backend_of_cuda(backend: str) -> None:
    def attend(*qkv: Tensor) -> Tensor:
        with sdpa_kernel(getattr(SDPBackend, backend if qkv[0].is_cuda else "MATH")):
            return F.scaled_dot_product_attention(*qkv)

    same(attend, *(seeded(2, 3, 8, 16, seed=seed) for seed in range(3)))


@pytest.mark.parametrize("mask", ["none", "causal", "bool", "float"])
def test_computes_attention_as_the_cpu(mask: str) -> None:
    score = seeded(8, 8, seed=4)
    masks = {"bool": score > 0, "float": score}

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(
            q,
            k,
            v,
            masks[mask].to(q.device) if mask in masks else None,
            is_causal=mask == "causal",
        )

    same(attend, *(seeded(2, 3, 8, 16, seed=seed) for seed in range(3)))


@pytest.mark.parametrize("cell", [nn.LSTM, nn.GRU, nn.RNN])
def test_runs_recurrent_layers_as_the_cpu(cell: Callable[..., nn.Module]) -> None:
    torch.manual_seed(0)
    layer = cell(4, 5, num_layers=2)
    other = copy.deepcopy(layer).to("cuda")
    x = seeded(3, 2, 4)
    assert_close(other(x.to("cuda"))[0].cpu(), layer(x)[0], rtol=0, atol=0)


def test_trains_as_the_cpu() -> None:
    losses: dict[str, list[float]] = {}
    for device in ("cpu", "cuda"):
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(),
            nn.LayerNorm(144), nn.Linear(144, 5),
        )  # fmt: skip
        parameters = list(model.parameters())
        model.to(device)
        assert all(map(lambda a, b: a is b, parameters, model.parameters()))
        optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
        x, y = seeded(8, 3, 8, 8).to(device), torch.arange(8, device=device) % 5
        for _ in range(3):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            losses.setdefault(device, []).append(loss.item())
    assert losses["cuda"] == losses["cpu"]


# ---- copies and memory


def test_copies_in_every_direction() -> None:
    x = seeded(3, 4)
    there = x.to("cuda")
    assert torch.equal(there.cpu(), x)
    assert torch.equal(there.to("cuda:1").cpu(), x)
    back = torch.empty(4, 3)
    back.copy_(there.T)
    assert torch.equal(back, x.T)
    there.copy_(x.double() + 1)
    assert torch.equal(there.cpu(), x + 1)
    assert there[1, 2].item() == (x + 1)[1, 2].item()


def test_rejects_numpy_and_mixed_devices_as_cuda_does() -> None:
    x = torch.ones(2, device="cuda")
    with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor"):
        x.numpy()
    with pytest.raises(
        RuntimeError,
        match="Expected all tensors to be on the same device, but found at least two "
        "devices, cuda:0 and cpu!",
    ):
        x + torch.ones(2)


@pytest.mark.parametrize(
    ("which", "types"),
    [
        (0, "(torch.FloatTensor) and weight type (torch.cuda.FloatTensor)"),
        (1, "(torch.cuda.FloatTensor) and weight type (torch.FloatTensor)"),
        (2, "(torch.cuda.FloatTensor) and bias type (torch.FloatTensor)"),
    ],
)
def test_rejects_convolutions_of_two_types_as_cuda_does(which: int, types: str) -> None:
    values = [seeded(1, 1, 4, 4), seeded(1, 1, 2, 2), seeded(1)]
    placed = [x if i == which else x.to(CUDA) for i, x in enumerate(values)]
    with pytest.raises(RuntimeError) as caught:
        F.conv2d(*placed)
    assert str(caught.value) == f"Input type {types} should be the same"


def test_rejects_a_convolution_with_a_weight_of_another_dtype() -> None:
    x, weight = seeded(1, 1, 4, 4).to(CUDA), seeded(1, 1, 2, 2).to(CUDA).double()
    with pytest.raises(RuntimeError, match=r"weight type \(torch.cuda.DoubleTensor\)"):
        F.conv2d(x, weight)


def test_resizes_and_shares_storages() -> None:
    x = torch.arange(4.0, device="cuda")
    x.resize_(100)
    assert x[:4].tolist() == [0, 1, 2, 3]
    y = torch.empty(0, device="cuda").set_(x.untyped_storage(), 1, (2,), (1,))
    assert y.tolist() == [1, 2]


def test_pins_memory() -> None:
    x = seeded(4).pin_memory()
    assert x.is_pinned()
    assert not seeded(4).is_pinned()
    y = x.to("cuda", non_blocking=True)
    torch.accelerator.synchronize()
    assert torch.equal(y.cpu(), x)


def test_raises_an_error_if_memory_is_exhausted() -> None:
    with pytest.raises(torch.OutOfMemoryError, match=r"^CUDA out of memory\. Tried"):
        torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
    gc.collect()
    assert torch.ones(2, device="cuda").sum().item() == 2


# ---- streams, events, random numbers


def test_orders_work_with_streams_and_events() -> None:
    stream = torch.Stream(device="cuda")
    assert stream.device == torch.device("cuda:0")
    start, end = (torch.Event(device="cuda", enable_timing=True) for _ in range(2))
    with stream:
        assert torch.accelerator.current_stream() == stream
        start.record()
        x = torch.ones(1000, device="cuda") * 2
        end.record()
    end.synchronize()
    assert start.elapsed_time(end) >= 0
    torch.accelerator.current_stream().wait_event(end)
    assert x.sum().item() == 2000
    assert torch.accelerator.device_count() == 2
    torch.accelerator.set_device_index(1)
    assert torch.ones(1, device="cuda").device.index == 1
    torch.accelerator.set_device_index(0)


def test_draws_the_numbers_of_a_generator() -> None:
    first, second = (torch.Generator("cuda").manual_seed(3) for _ in range(2))
    assert first.device.type == "cuda"
    drawn = torch.randn(5, device="cuda", generator=first)
    assert torch.equal(drawn, torch.randn(5, device="cuda", generator=second))
    state = first.get_state()
    following = torch.rand(3, device="cuda", generator=first)
    first.set_state(state)
    assert torch.equal(torch.rand(3, device="cuda", generator=first), following)
    with pytest.raises(RuntimeError, match="Expected a 'cuda' device type"):
        torch.randn(2, device="cuda", generator=torch.Generator())


# ---- autocast


def test_casts_by_the_lists_that_pytorch_has_for_cuda() -> None:
    x, y = seeded(3, 4).to("cuda"), seeded(4, 5, seed=1).to("cuda")
    with torch.autocast("cuda", dtype=torch.float16):
        assert (x @ y).dtype == torch.float16
        assert (x @ y).softmax(1).dtype == torch.float32
        assert torch.is_autocast_enabled("cuda")
    assert (x @ y).dtype == torch.float32


# ---- layouts


def test_computes_with_sparse_tensors() -> None:
    indices, values = torch.tensor([[0, 1, 1], [2, 0, 2]]), torch.tensor([3.0, 4, 5])
    x = torch.sparse_coo_tensor(indices, values, (2, 3))
    there = x.to("cuda")
    assert there.is_sparse
    assert there.is_cuda
    assert torch._C._dispatch_keys(there).has(torch._C.DispatchKey.SparseCUDA)
    dense = seeded(3, 2)
    for f in (
        lambda s, d: torch.sparse.mm(s, d),
        lambda s, d: (s + s).coalesce().to_dense(),
        lambda s, d: s.to_sparse_csr() @ d,
        lambda s, d: torch.sparse.sum(s, 0).to_dense(),
    ):
        assert torch.equal(f(there, dense.to("cuda")).cpu(), f(x, dense))
    created = torch.sparse_coo_tensor(
        indices.to("cuda"), values.to("cuda"), (2, 3), requires_grad=True
    )
    torch.sparse.mm(created, dense.to("cuda")).sum().backward()
    assert created.grad is not None
    assert created.grad.is_sparse


@pytest.mark.parametrize("layout", ["csr", "csc"])
def test_computes_with_compressed_sparse_tensors(layout: str) -> None:
    dense = seeded(4, 4).relu()
    x = getattr(dense, f"to_sparse_{layout}")()
    there = x.to("cuda")
    assert there.is_cuda
    assert there.layout == x.layout
    assert torch.equal(there.to_dense().cpu(), dense)
    assert_close((there @ dense.to("cuda")).to_dense().cpu(), (x @ dense).to_dense())


def test_computes_with_quantized_tensors() -> None:
    x = seeded(4, 5)
    quantized = torch.quantize_per_tensor(x, 0.1, 3, torch.qint8)
    there = torch.quantize_per_tensor(x.to("cuda"), 0.1, 3, torch.qint8)
    assert there.is_quantized
    assert there.is_cuda
    assert torch.equal(there.int_repr().cpu(), quantized.int_repr())
    assert torch.equal(there.dequantize().cpu(), quantized.dequantize())
    assert torch.equal(quantized.to("cuda").dequantize().cpu(), quantized.dequantize())
    scales, zeros = torch.rand(4) + 0.1, torch.zeros(4, dtype=torch.long)
    per_channel = torch.quantize_per_channel(
        x.to("cuda"), scales.to("cuda"), zeros.to("cuda"), 0, torch.qint8
    )
    expected = torch.quantize_per_channel(x, scales, zeros, 0, torch.qint8)
    assert torch.equal(per_channel.int_repr().cpu(), expected.int_repr())


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_computes_with_nested_tensors(layout: torch.layout) -> None:
    parts = [seeded(2, 4), seeded(3, 4, seed=1)]
    results = []
    for device in ("cpu", "cuda"):
        nested = torch.nested.nested_tensor(
            parts, layout=layout, device=device, requires_grad=True
        )
        assert nested.device.type == device
        weight = seeded(5, 4, seed=2).to(device)
        result = F.linear(nested, weight).relu()
        result.values().sum().backward()
        assert nested.grad is not None
        results.append(
            [each.cpu() for each in (*result.unbind(), *nested.grad.unbind())]
        )
    for expected, actual in zip(*results, strict=True):
        assert_close(actual, expected)


# ---- profilers and checkpoints


def test_measures_device_times_in_the_older_profiler() -> None:
    with torch.autograd.profiler.profile(use_device="cuda", use_kineto=False) as found:
        torch.ones(1000, device="cuda").exp()
    assert any(event.name == "aten::exp" for event in found.function_events)


def test_saves_and_loads_tensors(tmp_path: Any) -> None:
    x = seeded(3).to("cuda")
    torch.save(x, tmp_path / "x.pt")
    assert torch.equal(torch.load(tmp_path / "x.pt", map_location="cpu"), x.cpu())


def test_computes_with_numbers_of_python() -> None:
    x = torch.tensor(2.0, device="cuda")
    assert math.isclose(float(x) + 1, 3)
    assert f"{x}" == "2.0"
    assert repr(x) == "tensor(2., device='cuda:0')"
