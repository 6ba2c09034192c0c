# SPDX-License-Identifier: BSD-3-Clause
"""The dispatch paths: all compute the CPU's bits, and each is counted."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from openreg_aten import _C
from support.paths import counted

Both = Callable[..., Any]


def values(dtype: torch.dtype, *shape: int) -> Tensor:
    """Numbers between 0.5 and 4, which suit integer dtypes and all kernels."""
    numbers = torch.linspace(0.5, 4, torch.Size(shape).numel(), dtype=torch.float64)
    if dtype.is_complex:
        return torch.complex(numbers, numbers.flip(0)).to(dtype).view(shape)
    return numbers.to(dtype).view(shape)


UNARY = (
    "exp",
    "log",
    "sqrt",
    "rsqrt",
    "reciprocal",
    "sin",
    "cos",
    "tan",
    "asinh",
    "atan",
    "tanh",
    "sinc",
    "sigmoid",
    "erf",
    "erfc",
    "exp2",
    "expm1",
    "log2",
    "log10",
    "log1p",
    "neg",
    "floor",
    "ceil",
    "round",
    "trunc",
)
BINARY = {
    "add": torch.add,
    "add alpha": lambda x, y: torch.add(x, y, alpha=3),
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "eq": torch.eq,
    "ne": torch.ne,
    "lt": torch.lt,
    "le": torch.le,
    "gt": torch.gt,
    "ge": torch.ge,
    "addcmul": lambda x, y: torch.addcmul(x, x, y, value=2),
    "addcdiv": lambda x, y: torch.addcdiv(x, x, y, value=2),
    "lerp": lambda x, y: torch.lerp(x, y, 0.3),
    "lerp tensor": lambda x, y: torch.lerp(x, x, y),
    "div floor": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "fmod": torch.fmod,
    "remainder": torch.remainder,
    "pow": torch.pow,
    "hypot": torch.hypot,
    "atan2": torch.atan2,
    "copysign": torch.copysign,
    "xlogy": torch.xlogy,
    "fmax": torch.fmax,
    "clamp_max tensor": lambda x, y: torch.clamp_max(x, y),
    "softplus_backward": lambda x, y: torch.ops.aten.softplus_backward(x, y, 2, 3),
    "leaky_relu_backward": lambda x, y: torch.ops.aten.leaky_relu_backward(
        x, y, 0.1, False
    ),
    "logit_backward": lambda x, y: torch.ops.aten.logit_backward(x, y, 0.1),
    "threshold_backward": lambda x, y: torch.ops.aten.threshold_backward(x, y, 1),
    "sigmoid_backward": torch.ops.aten.sigmoid_backward,
    "tanh_backward": torch.ops.aten.tanh_backward,
}
SCALAR = {
    "add": lambda x: x + 2,
    "sub": lambda x: x - 0.25,
    "mul": lambda x: 3 * x,
    "div": lambda x: x / 3,
    "rsub": lambda x: 1 - x,
    "eq": lambda x: x == 1,
    "gt": lambda x: x > 1.5,
    "pow 0": lambda x: x**0,
    "pow 1": lambda x: x**1,
    "pow 2": lambda x: x**2,
    "pow 1.5": lambda x: x**1.5,
    "relu": lambda x: (x - 2).relu(),
    "relu_": lambda x: (x - 2).relu_(),
    "clamp_min": lambda x: x.clamp_min(1),
    "clamp_min nan": lambda x: x.clamp_min(float("nan")),
    "clamp_max nan": lambda x: x.clamp_max(float("nan")),
    "remainder": lambda x: x % 3,
    "round decimals": lambda x: (x * 1.0).round(decimals=1),
    "polygamma": lambda x: torch.polygamma(2, x),
    "isposinf": lambda x: x.isposinf(),
    "signbit": lambda x: (x > 1).signbit(),
}
FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
DTYPES = (*FLOATS, torch.int64, torch.uint8)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_unary_operator_has_the_bits_of_the_cpu(
    both: Both, name: str, dtype: torch.dtype
) -> None:
    function = getattr(torch, name)
    both(function, values(dtype, 3, 5))
    both(function, values(dtype, 4, 6)[::2, 1::2])
    both(function, values(dtype, 4, 6).t())
    both(function, values(dtype))
    both(function, values(dtype, 0, 3))
    if dtype.is_floating_point:
        both(getattr(torch, name + "_"), values(dtype, 4, 6)[:, ::2])


@pytest.mark.parametrize("name", BINARY)
def test_binary_operator_has_the_bits_of_the_cpu(both: Both, name: str) -> None:
    function = BINARY[name]
    for dtype in FLOATS:
        both(function, values(dtype, 3, 4), values(dtype, 3, 4).flip(0))
        both(function, values(dtype, 3, 4), values(dtype, 4, 3).t())
    x = values(torch.float32, 3, 4)
    if "backward" not in name:
        both(function, x, values(torch.float32, 4))
        both(function, x[:, :1], values(torch.float32, 1, 4))
        both(function, x[:0], values(torch.float32, 1, 4))
    channels_last = values(torch.float32, 2, 3, 4, 5).to(
        memory_format=torch.channels_last
    )
    both(function, channels_last, channels_last)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "maximum", "lt"])
@pytest.mark.parametrize("left", [*DTYPES, torch.bool, torch.complex64], ids=str)
def test_types_are_promoted_as_on_the_cpu(
    both: Both, name: str, left: torch.dtype
) -> None:
    for right in (*DTYPES, torch.bool, torch.complex64):
        if torch.bool in (left, right) and name == "sub":
            continue
        types = {left, right}
        no_order = torch.complex64 in types and name in ("maximum", "lt")
        # The CPU does not compute in complex dtypes of 16-bit floats.
        promoted = torch.result_type(values(left, 2), values(right))
        is_narrow = promoted.is_complex and promoted.itemsize == 4
        if not no_order:
            both(BINARY[name], values(left, 2, 3), values(right, 3))
            if not is_narrow:
                both(BINARY[name], values(left, 2, 3), values(right))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", SCALAR)
def test_operator_with_a_number_has_the_bits_of_the_cpu(
    both: Both, name: str, dtype: torch.dtype
) -> None:
    both(SCALAR[name], values(dtype, 2, 3))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64], ids=str)
def test_cpu_scalar_tensor_is_accepted_with_device_tensors(
    device: str, same: Callable[[Any, Any], None], dtype: torch.dtype
) -> None:
    x, scalar = values(torch.float32, 2, 3), values(dtype)
    on_device = x.to(device)
    same(on_device + scalar, x + scalar)
    same(scalar * on_device, scalar * x)
    same(on_device > scalar, x > scalar)
    same(on_device.sub_(scalar), x.sub_(scalar))


def test_operator_in_place_keeps_the_tensor_and_its_memory(device: str) -> None:
    x = torch.arange(12.0, device=device)
    part = x[::2]
    address = part.data_ptr()
    assert part.mul_(2) is part
    assert part.add_(part) is part
    assert part.data_ptr() == address
    assert x.tolist() == [0, 1, 8, 3, 16, 5, 24, 7, 32, 9, 40, 11]


def test_lazily_copied_tensor_is_copied_before_it_is_written(device: str) -> None:
    x = torch.ones(3, device=device)
    y = torch._lazy_clone(x)
    y.add_(1)
    assert (x.tolist(), y.tolist()) == ([1, 1, 1], [2, 2, 2])


ERRORS: dict[str, Callable[[str], object]] = {
    "shape": lambda d: torch.ones(2, 3, device=d) + torch.ones(2, 4, device=d),
    "in-place shape": lambda d: torch.ones(3, device=d).add_(torch.ones(2, 3).to(d)),
    "in-place dtype": lambda d: torch.ones(3, device=d).int().add_(torch.ones(3).to(d)),
    "in-place float": lambda d: torch.ones(3, device=d).int().exp_(),
    "overlap": lambda d: torch.ones(1, device=d).expand(3).add_(1),
    "partial overlap": lambda d: (lambda x: x[1:].mul_(x[:-1]))(torch.ones(4).to(d)),
    "bool": lambda d: torch.ones(3, device=d).bool() - torch.ones(3, device=d).bool(),
    "relu of bool": lambda d: torch.ones(3, device=d).bool().relu(),
    "product": lambda d: torch.ones(2, 3, device=d) @ torch.ones(2, 3, device=d),
}


@pytest.mark.parametrize("name", ERRORS)
def test_wrong_use_is_refused_as_by_the_cpu(device: str, name: str) -> None:
    with pytest.raises(RuntimeError) as expected:
        ERRORS[name]("cpu")
    # The error is not stored, because its traceback refers to device tensors.
    with pytest.raises(RuntimeError, match=f"^{re.escape(str(expected.value))}$"):
        ERRORS[name](device)


@pytest.mark.parametrize(
    "function",
    [torch.add, torch.mul, torch.gt, torch.Tensor.add_, torch.mm, torch.maximum],
)
def test_tensors_of_two_devices_are_refused(device: str, function: Both) -> None:
    x = torch.ones(2, 2, device=f"{device}:0")
    words = "Expected all tensors to be on the same device, but found at least two"
    for y in (torch.ones(2, 2), torch.ones(2, 2, device=f"{device}:1")):
        for pair in ((x, y), (y, x)):
            with pytest.raises(RuntimeError, match=words):
                function(*pair)


def test_result_is_on_the_device_of_the_operands(device: str) -> None:
    x = torch.ones(3, device=f"{device}:1")
    assert (x + x).get_device() == 1
    assert (x > 0).get_device() == 1
    assert x.exp().sum().get_device() == 1
    assert torch.accelerator.current_device_index() == 0


def test_operators_under_inference_mode_give_inference_tensors(device: str) -> None:
    x = torch.ones(2, 2, device=device)
    with torch.inference_mode():
        results = [x + x, x @ x, x.sum(), x.abs(), torch.isin(x, 1)]
    assert all(result.is_inference() for result in results)
    later = [x + x, x @ x, x.sum(), x.abs(), torch.isin(x, 1)]
    assert not any(result.is_inference() for result in later)


def test_gradients_flow_through_every_path(both: Both) -> None:
    def train(x: Tensor, w: Tensor) -> Tensor:
        x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
        y = ((x @ w).relu().exp().abs() + x).frac().tril_().cumsum(0).sigmoid()
        return torch.stack(torch.autograd.grad(y.sum(), (x, w)))

    both(train, torch.randn(4, 4), torch.randn(4, 4))


@pytest.mark.parametrize(
    ("use", "name", "path"),
    [
        (lambda x: x + x, "aten::add.Tensor", "structured"),
        (lambda x: x + 1, "aten::add.Tensor", "structured"),
        (lambda x: x.mul_(2), "aten::mul_.Tensor", "structured"),
        (lambda x: x.frac(), "aten::frac", "structured"),
        (lambda x: x.hypot(x), "aten::hypot", "structured"),
        (lambda x: x.log1p_(), "aten::log1p_", "structured"),
        (lambda x: x + x.int(), "aten::add.Tensor", "typed"),
        (lambda x: x.isneginf(), "aten::isneginf", "typed"),
        (lambda x: torch.linalg.qr(x), "aten::linalg_qr", "typed"),
        (lambda x: torch.fft.fft(x), "aten::_fft_r2c", "typed"),
        (
            lambda x: x.index_add_(0, torch.ones(2).long().to(x.device), x.clone()),
            "aten::index_add_",
            "typed",
        ),
        (lambda x: x @ x, "aten::mm", "typed"),
        (lambda x: torch.cat([x, x]), "aten::cat", "typed"),
        (lambda x: x[[0]], "aten::index.Tensor", "typed"),
        (lambda x: x.normal_(), "aten::normal_", "typed"),
        (lambda x: torch._foreach_add_([x], 1), "aten::_foreach_add_.Scalar", "typed"),
        (lambda x: x.abs(), "aten::abs.out", "stub"),
        (lambda x: torch.isin(x, 1), "aten::isin.Tensor_Scalar", "boxed"),
    ],
)
def test_operator_takes_its_path(
    device: str, use: Callable[[Tensor], object], name: str, path: str
) -> None:
    x = torch.ones(2, 2, device=device)
    with counted() as calls:
        use(x)
        use(x)
    assert calls[name, path] == 2
    assert [key for key in calls if key[0] == name] == [(name, path)]
    with counted() as later:
        pass
    assert not later


def test_nothing_is_counted_outside_of_a_count(device: str) -> None:
    before = _C.path_counts()
    x = torch.ones(2, device=device)
    torch.isin((x + x).sum().abs(), 1)
    assert _C.path_counts() == before


def test_operators_of_other_threads_are_counted(device: str) -> None:
    x = torch.ones(2, device=device)
    with counted() as calls:
        threads = [threading.Thread(target=x.exp) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    # A call behind another thread's operator on the stream is enqueued.
    assert calls["aten::exp", "structured"] + calls["aten::exp", "enqueued"] == 4


def test_many_tensors_and_threads_share_no_view(device: str) -> None:
    """The tensor objects that kernels see are reused, by only one thread."""
    failures = []

    def work(seed: int) -> None:
        for step in range(50):
            parts = [
                torch.full((size,), float(seed + step), device=device)
                for size in range(1, 40)
            ]
            total = torch.cat(parts).sum().item()
            if total != (seed + step) * sum(range(1, 40)):
                failures.append((seed, step, total))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_kernel_that_throws_leaves_later_ones_right(device: str, both: Both) -> None:
    x = torch.ones(2, 3, device=device)
    for _ in range(20):
        with pytest.raises(RuntimeError):
            x @ x
        with pytest.raises(RuntimeError):
            torch.cat([x, x[0]])
    both(torch.mm, torch.randn(2, 3), torch.randn(3, 2))
