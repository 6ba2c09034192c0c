# SPDX-License-Identifier: BSD-3-Clause
"""The metadata of enqueued operators' results before they are computed."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from support.latches import Latches

I16 = torch.int16
INTEGERS = torch.arange(1, 100_001, dtype=torch.int32)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (lambda x: x.view(10, -1).prod(0), lambda x: x.view(10, -1).prod(0, dtype=I16)),
        (lambda x: torch.remainder(6, x), lambda x: torch.remainder(6.5, x)),
        (lambda x: torch.pow(7, x), lambda x: torch.pow(0.5, x)),
        (
            lambda x: torch.argmax(x.view(4, 5, -1), out=x.new_empty(0).long()),
            lambda x: torch.argmax(x.view(4, 5, -1), 2, out=x.new_empty(0).long()),
        ),
    ],
    ids=["dtype", "number", "base", "dimension"],
)
def test_calls_that_make_something_else_are_told_apart(
    first: Callable[[Tensor], Tensor],
    second: Callable[[Tensor], Tensor],
    device: str,
    same: Callable[[Any, Any], None],
) -> None:
    x = INTEGERS.to(device)
    for function in (first, second, first, second):
        same(function(x), function(INTEGERS))


def test_default_dtype_is_part_of_a_call(
    device: str, same: Callable[[Any, Any], None]
) -> None:
    x = INTEGERS.to(device)
    before = torch.get_default_dtype()
    try:
        for dtype in (torch.float32, torch.float64, torch.float32, torch.float64):
            torch.set_default_dtype(dtype)
            for function in (torch.log1p, torch.sinh, torch.sqrt):
                same(function(x), function(INTEGERS))
    finally:
        torch.set_default_dtype(before)


PROMOTING = {
    "division": lambda x: x / 3,
    "division by itself": lambda x: x / x.flip(0),
    "of booleans": lambda x: (x > 3) / (x > 0),
    "float number": lambda x: x * 0.1,
    "complex number": lambda x: x * 0.1j,
    "unary": torch.sqrt,
    "choice of numbers": lambda x: torch.where(x > 50_000, 0.1, 0.2),
    "choice": lambda x: torch.where(x > 50_000, x, 0.1),
    "floor division": lambda x: x // 1.1,
    "integers": lambda x: x * 3,
    "floats": lambda x: x.half() * 0.1,
}


@pytest.mark.parametrize("function", PROMOTING.values(), ids=PROMOTING)
def test_an_enqueued_operator_uses_the_default_dtype_of_its_call(
    function: Callable[[Tensor], Tensor],
    device: str,
    latch: Latches,
    same: Callable[[Any, Any], None],
) -> None:
    x = INTEGERS.to(device)
    before = torch.get_default_dtype()
    try:
        for dtype in (torch.float32, torch.float64):
            torch.set_default_dtype(dtype)
            expected = function(INTEGERS)
            function(x)
            held = latch()
            result = function(x)
            assert held.holds
            torch.set_default_dtype(torch.float16)
            held.release()
            same(result, expected)
    finally:
        torch.set_default_dtype(before)


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_operator_that_reads_what_it_resizes_waits(
    device: str, latch: Latches, same: Callable[[Any, Any], None]
) -> None:
    left, right = torch.rand(2, 3, 4), torch.rand(2, 4, 5)
    for _ in range(2):  # the second call has a known result
        expected = torch.tensor([7.0]).addbmm_(left, right)
        x, a, b = torch.tensor([7.0]).to(device), left.to(device), right.to(device)
        held = latch()
        threading.Timer(0.3, held.release).start()
        same(x.addbmm_(a, b), expected)


def test_numbers_past_the_signed_ones_are_filled_in(device: str) -> None:
    x = torch.zeros(4, dtype=torch.uint64, device=device).fill_(2**64 - 1)
    assert x.tolist() == [2**64 - 1] * 4


def test_memory_format_decides_about_results_of_one_channel(device: str) -> None:
    x, weight = torch.rand(16, 1, 28, 28), torch.rand(2, 1, 3, 3)
    last = x.to(memory_format=torch.channels_last)
    for each in (x, last, x, last):
        result = F.conv2d(each.to(device), weight.to(device))
        assert result.stride() == F.conv2d(each, weight).stride()


def test_results_are_resized_where_other_arguments_are_written(
    device: str, same: Callable[[Any, Any], None]
) -> None:
    def normalize(device: str) -> list[Tensor]:
        x = torch.arange(30_000.0).view(10, 3, -1).to(device)
        weight, bias, mean, variance = torch.ones(4, 3, device=device).unbind()
        out = [torch.empty(0, device=device) for _ in range(3)]
        torch.ops.aten._native_batch_norm_legit.out(
            *(x, weight, bias, mean, variance, True, 0.1, 1e-5),
            out=out[0],
            save_mean=out[1],
            save_invstd=out[2],
        )
        return [*out, mean, variance]

    for _ in range(3):
        same(normalize(device), normalize("cpu"))


def test_strides_that_no_element_needs_reach_enqueued_results(
    device: str, latch: Latches
) -> None:
    strides = [(3, 3, 1), (6, 6, 2)]

    def flip(device: str) -> list[tuple[int, ...]]:
        made = [
            torch.empty_strided((2, 0, 3), each, device=device).flip(0)
            for each in strides
        ]
        return [each.stride() for each in made]

    expected = flip("cpu")
    assert flip(device) == expected
    held = latch()
    assert flip(device) == expected
    held.release()


def test_result_that_a_kernel_leaves_conjugate_has_the_right_values(
    device: str, same: Callable[[Any, Any], None]
) -> None:
    def solve(device: str) -> Tensor:
        torch.manual_seed(0)
        a = torch.randn(80, 80, dtype=torch.complex128).to(device)
        b = torch.randn(70, 80, dtype=torch.complex128).to(device)
        out = torch.empty(0, dtype=torch.complex128, device=device)
        torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b, left=False, out=out)
        return out

    expected = solve("cpu")
    assert expected.is_conj()
    for _ in range(3):
        result = solve(device)
        assert result.is_conj()
        same(result, expected)


@pytest.mark.parametrize(
    "refused",
    [
        lambda x: x.to(torch.int8).clamp_min(1000),
        lambda x: x.to(torch.int8).fill_(1000.0),
        lambda x: x.to(torch.float16).clamp_min(1e6),
        lambda x: x.to(torch.int64).add(x.to(torch.int64), alpha=0.5),
        lambda x: x.to(torch.int8).masked_fill(x > 0, 300),
        lambda x: F.huber_loss(x, x + 1, delta=-1.0),
        lambda x: F.smooth_l1_loss(x, x + 1, beta=-1.0),
        lambda x: torch.renorm(x.view(2, -1), -1.0, 0, 1.0),
        lambda x: torch.histc(x, 4, 2.0, 1.0),
    ],
)
def test_number_that_a_kernel_refuses_is_an_error_of_the_call(
    refused: Callable[[Tensor], Tensor], device: str
) -> None:
    x = torch.arange(100_000.0) / 1000  # large enough to be enqueued
    on_device = x.to(device)
    ints, half = on_device.to(torch.int8), on_device.to(torch.float16)
    longs = on_device.to(torch.int64)
    for _ in range(2):  # the same with numbers that are accepted
        ints.clamp_min(1), ints.clone().fill_(1.0), half.clamp_min(1.0)
        longs.add(longs, alpha=2), ints.masked_fill(on_device > 0, 30)
        F.huber_loss(on_device, on_device + 1, delta=1.0)
        F.smooth_l1_loss(on_device, on_device + 1, beta=1.0)
        torch.renorm(on_device.view(2, -1), 1.0, 0, 1.0)
        torch.histc(on_device, 4, 1.0, 2.0)
    for _ in range(2):
        with pytest.raises(RuntimeError) as expected:
            refused(x)
        with pytest.raises(RuntimeError) as raised:
            refused(on_device)
        assert str(raised.value) == str(expected.value)
    torch.accelerator.synchronize()


def test_strides_with_a_conversion_do_not_depend_on_the_work_of_the_stream(
    device: str, latch: Latches
) -> None:
    x = torch.rand(2, 3, 4, 1)
    y = torch.rand(2, 3, 4, 5, dtype=torch.float64)
    y = y.to(memory_format=torch.channels_last)
    expected = torch.mul(x.expand(2, 3, 4, 5), y)
    x, y = x.to(device).expand(2, 3, 4, 5), y.to(device)
    torch.mul(y, y)  # the dtype is cached now
    assert torch.mul(x, y).stride() == expected.stride()
    held = latch()
    assert torch.mul(x, y).stride() == expected.stride()
    held.release()


def test_new_strides_with_a_conversion_are_those_of_the_converted_operands(
    device: str, latch: Latches
) -> None:
    x = torch.empty_strided((2, 1, 4, 5), (20, 1, 5, 1), dtype=torch.complex64).zero_()
    y = torch.rand(2, 1, 1, 5).expand(2, 1, 4, 5)
    on_device = torch.empty_strided(
        x.shape, x.stride(), dtype=x.dtype, device=device
    ).zero_()
    divisor = torch.rand(2, 1, 1, 5, device=device).expand(2, 1, 4, 5)
    assert (on_device.stride(), divisor.stride()) == (x.stride(), y.stride())
    for call in (torch.div, torch.add, torch.mul, torch.sub, torch.pow):
        # The kernel has run with these dtypes, with other strides.
        call(x.to(device).contiguous(), divisor.contiguous())
        held = latch()
        result = call(on_device, divisor)
        assert held.holds
        held.release()
        assert result.stride() == call(x, y).stride()


@pytest.mark.parametrize(
    ("accepted", "refused"),
    [
        (
            lambda x: torch.sin(x[:20], out=x[40:60]),
            lambda x: torch.sin(x[30:50], out=x[40:60]),
        ),
        (
            lambda x: torch.cat([*x[20:40].clone().split(2)], out=x[:20]),
            lambda x: torch.cat([*x[20:38].clone().split(2), x[8:10]], out=x[:20]),
        ),
        (
            lambda x: x.view(10, 6).bernoulli_(x.new_ones(6)),
            lambda x: x.view(6, 10).bernoulli_(x.new_ones(6)),
        ),
    ],
    ids=["overlap", "overlap with a late one of many", "probabilities"],
)
def test_arguments_that_do_not_fit_are_an_error_of_the_call(
    accepted: Callable[[Tensor], Tensor],
    refused: Callable[[Tensor], Tensor],
    device: str,
    latch: Latches,
) -> None:
    x = torch.arange(60.0)
    on_device = x.to(device)
    with pytest.raises(RuntimeError) as expected:
        refused(x)
    for _ in range(2):
        held = latch()
        threading.Timer(0.3, held.release).start()  # a failing call waits
        accepted(on_device), accepted(on_device)
        with pytest.raises(RuntimeError) as raised:
            refused(on_device)
        assert str(raised.value) == str(expected.value)
        torch.accelerator.synchronize()


@pytest.mark.parametrize(
    "resize",
    [
        lambda out: torch.mm(out[None], out[:, None], out=out.clone()),
        lambda out: torch.sin(out[:7], out=out.clone()),
        lambda out: torch.cummax(out[:7], 0, out=(out.clone(), out.long()))[0],
        lambda out: torch.linspace(0, 1, 7, out=out.clone()),
        lambda out: torch.linspace(0, 1, 9, out=out.view(3, 3).clone()),
        lambda out: torch.linspace(0, 1, 0, out=out.new_empty(0, 3)),
        lambda out: torch.arange(7, out=out.clone()),
        lambda out: torch.eye(7, out=out.clone()),
        lambda out: torch.narrow_copy(out, 0, 2, 3, out=out.clone()),
        lambda out: torch.bernoulli(out[:7] * 0, out=out.clone()),
    ],
    ids=[
        "product",
        "pointwise",
        "two",
        "silent",
        "of as many elements",
        "without elements",
        "in its own words",
        "of no tensor",
        "copy",
        "random",
    ],
)
def test_result_of_another_size_is_warned_about_as_on_the_cpu(
    resize: Callable[[Tensor], Tensor],
    device: str,
    latch: Latches,
    same: Callable[[Any, Any], None],
) -> None:
    def warned(out: Tensor) -> tuple[Tensor, list[str]]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            made = resize(out)
        return made, [str(each.message) for each in caught]

    x = torch.arange(9.0)
    on_device = x.to(device)
    expected, messages = warned(x)
    for _ in range(3):
        held = latch()
        threading.Timer(0.3, held.release).start()  # the call waits
        made, told = warned(on_device)
        assert told == messages
        torch.accelerator.synchronize()
        same(made, expected)


@pytest.mark.parametrize("count", [0, 4, 6, 9, 40])
def test_new_call_with_a_result_of_another_size_does_not_wait(
    count: int, device: str, latch: Latches, same: Callable[[Any, Any], None]
) -> None:
    vector, matrix = torch.rand(3), torch.rand(3, 6)
    for call in (
        lambda v, m, out: torch.matmul(v, m, out=out),
        lambda v, m, out: torch.exp(m[:, 1:], out=out),
        lambda v, m, out: torch.cat([v, v], out=out),
        lambda v, m, out: torch.cumsum(m, 1, out=out),
        lambda v, m, out: torch.geqrf(m[:, :3], out=(out, v.clone()))[0],
        lambda v, m, out: out.resize_(2, 6).copy_(m[:2]),
    ):
        on_device = vector.to(device), matrix.to(device), torch.ones(count).to(device)
        held = latch()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = call(vector, matrix, torch.ones(count))
            made = call(*on_device)
        assert held.holds
        held.release()
        same(made, expected)


def test_resize_behind_a_busy_stream_keeps_computed_values(
    device: str, latch: Latches
) -> None:
    x = torch.zeros(5, device=device)
    held = latch()
    x.copy_(torch.arange(5.0, device=device) + 1)
    x.resize_(70_000)[5:].fill_(7)
    assert held.holds
    held.release()
    assert x[:6].tolist() == [1, 2, 3, 4, 5, 7]


def test_result_that_gets_its_size_over_an_argument_is_as_on_the_cpu(
    device: str, latch: Latches
) -> None:
    def put(device: str) -> list[Any]:
        memory = torch.arange(100.0, device=device)
        rows = torch.tensor([1, 2], device=device)
        torch.index_select(memory[:48].view(12, 4), 0, rows, out=memory[0:0])
        x = memory[:48].view(6, 8)
        return [memory, torch.mul(x.mT, x.mT, out=memory[20:20]).stride()]

    expected, strides = put("cpu")
    for _ in range(3):
        held = latch()
        threading.Timer(0.3, held.release).start()  # the call waits
        made = put(device)
        torch.accelerator.synchronize()
        assert torch.equal(made[0].cpu(), expected)
        assert made[1] == strides


def test_overlapping_copies_are_refused_by_the_call(device: str) -> None:
    x = torch.arange(100_000.0, device=device)
    with pytest.raises(RuntimeError, match="single memory location"):
        x[:1].expand(1000).copy_(x[:1000])
    with pytest.raises(RuntimeError, match="the input tensor and"):
        x[1:].copy_(x[:-1])


def test_result_shape_of_a_mask_is_not_cached(device: str) -> None:
    x = torch.arange(6.0, device=device)
    for mask in ([1, 0, 0, 1, 1, 0], [0, 1, 0, 0, 0, 0]):
        chosen = torch.tensor(mask, dtype=torch.bool)
        assert torch.equal(x[chosen.to(device)].cpu(), torch.arange(6.0)[chosen])
