# SPDX-License-Identifier: BSD-3-Clause
"""Operators in dtypes that CUDA supports and the CPU refuses, and the limits.

tests/sweeps/test_wider_dtypes.py tests all of them.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


@pytest.fixture(autouse=True)
def experimental() -> Iterator[None]:
    """Ignores PyTorch's warning that complex32 is experimental."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "ComplexHalf support is experimental")
        yield


def complex_half(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.complex64).to(torch.complex32)


@pytest.mark.parametrize("experts", [1, 2, 8, 60, 128])
def test_histc_counts_tokens_per_expert(device: str, experts: int) -> None:
    """The call of transformers' mixture of experts on devices other than the CPU."""
    ids = torch.randint(experts, (64, 4)).flatten().sort().values
    counts = torch.histc(ids.to(device).int(), bins=experts, min=0, max=experts - 1)
    assert counts.dtype == torch.int32
    assert counts.tolist() == torch.bincount(ids, minlength=experts).tolist()
    offsets = torch.cumsum(counts, dim=0, dtype=torch.int32)
    assert int(offsets[-1]) == ids.numel()


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("bins", [1, 3, 49, 100])
def test_histc_of_integers_is_not_rounded(
    device: str, dtype: torch.dtype, bins: int
) -> None:
    numbers = torch.arange(5, 120, dtype=dtype)
    for low, high in ((0, 0), (5, 54), (0, 49), (7, 8), (110, 119)):
        first, last = (5, 119) if low == high else (low, high)
        wanted = [0] * bins
        for number in range(max(first, 5), min(last, 119) + 1):
            wanted[min((number - first) * bins // (last - first), bins - 1)] += 1
        counts = torch.histc(numbers.to(device), bins, low, high)
        assert counts.tolist() == wanted


def test_histc_of_equal_integers_has_them_in_the_middle(device: str) -> None:
    equal = torch.full((4,), 3, dtype=torch.int32, device=device)
    assert torch.histc(equal, bins=5).tolist() == [0, 0, 4, 0, 0]
    assert torch.histc(equal[:0], bins=2).tolist() == [0, 0]


def test_result_is_promoted_before_it_is_narrowed(device: str) -> None:
    x = complex_half(3).to(device)
    wide = torch.ones(3, device=device)
    assert (x / wide).dtype == torch.complex64
    assert (wide / x).dtype == torch.complex64
    assert (x / wide[0]).dtype == torch.complex32
    assert (x / 2).dtype == torch.complex32
    assert (wide.half() / 2j).dtype == torch.complex32
    assert (wide.half() / 2j).tolist() == [-0.5j] * 3
    assert torch.pow(2j, wide.half()).dtype == torch.complex32
    assert torch.angle(x).dtype == torch.float16
    assert torch.fft.rfft(wide.half()).dtype == torch.complex32
    assert torch.fft.irfft(x).dtype == torch.float16


def test_dtype_argument_decides(device: str) -> None:
    x = complex_half(5)
    on_device = x.to(device)
    wide = on_device.sum(dtype=torch.complex64)
    assert wide.dtype == torch.complex64
    assert wide.item() == x.to(torch.complex64).sum().item()
    assert on_device.sum().dtype == torch.complex32
    ones = torch.ones(3, dtype=torch.float16, device=device)
    assert ones.sum(dtype=torch.complex32).dtype == torch.complex32
    assert ones.sum().dtype == torch.float16


def test_out_gets_the_sizes_and_keeps_its_memory(device: str) -> None:
    x = complex_half(4, 3).to(device)
    out = torch.empty(0, dtype=torch.complex32, device=device)
    assert torch.exp(x.t(), out=out) is out
    assert (out.shape, out.stride()) == (x.t().shape, x.t().stride())
    filled = torch.ones(2, dtype=torch.complex32, device=device)
    with pytest.warns(UserWarning, match="An output with one or more") as caught:
        torch.exp(x, out=filled)
    assert len(caught) == 1
    assert filled.tolist() == x.exp().tolist()
    gaps = torch.zeros(4, 6, dtype=torch.complex32, device=device)[:, ::2]
    address = gaps.data_ptr()
    torch.exp(x, out=gaps)
    assert (gaps.data_ptr(), gaps.stride()) == (address, (6, 2))
    assert gaps.tolist() == x.exp().tolist()


def test_in_place_writes_through_views_and_counts_one_version(device: str) -> None:
    x = complex_half(6).to(device)
    wanted = [*x[:3].tolist(), *x[3:].exp().tolist()]
    before = x._version
    part = x[3:]
    assert part.exp_() is part
    assert x.tolist() == wanted
    assert x._version == before + 1


def test_memory_that_overlaps_is_refused(device: str) -> None:
    uses: list[Callable[[Tensor], object]] = [
        lambda x: x[:1].expand(3).exp_(),
        lambda x: torch.exp(x[1:], out=x[:-1]),
        lambda x: torch.angle(x[1:], out=x[:-1]),
        lambda x: torch.div(x[1:], 2, out=x[:-1]),
    ]
    for use in uses:
        with pytest.raises(RuntimeError) as expected:
            use(complex_half(4).to(torch.complex64))
        with pytest.raises(RuntimeError, match=f"^{re.escape(str(expected.value))}$"):
            use(complex_half(4).to(device))


def test_what_cuda_also_refuses_is_refused_with_the_message_of_the_cpu(
    device: str,
) -> None:
    uses: list[Callable[[str], object]] = [
        lambda d: complex_half(3).to(d).cumprod(0),
        lambda d: torch.ones(3, dtype=torch.bool, device=d).histc(),
        lambda d: torch.fft.fft(torch.ones(4, dtype=torch.bfloat16, device=d)),
        lambda d: complex_half(3).to(d).erf(),
        lambda d: torch.ones(3, dtype=torch.int32, device=d).histc(bins=0),
    ]
    for use in uses:
        with pytest.raises((RuntimeError, ValueError)) as expected:
            use("cpu")
        with pytest.raises(type(expected.value)) as mine:
            use(device)
        if "histc" not in str(expected.value):
            # A kernel's name ends with the device's name.
            words = str(expected.value).replace("_cpu", f"_{torch.device(device).type}")
            assert str(mine.value) == words


def test_gradient_and_inference_take_the_same_way(device: str) -> None:
    x = torch.randn(8, dtype=torch.float16)
    leaf = x.to(device).requires_grad_()
    torch.fft.rfft(leaf).abs().sum().backward()
    wide = x.float().requires_grad_()
    torch.fft.rfft(wide).abs().sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.dtype == torch.float16
    torch.testing.assert_close(
        leaf.grad.cpu(), wide.grad, check_dtype=False, rtol=1e-2, atol=1e-2
    )
    with torch.inference_mode():
        result = torch.fft.rfft(x.to(device))
        assert result.is_inference()
    assert result.tolist() == torch.fft.rfft(x.float()).to(torch.complex32).tolist()
