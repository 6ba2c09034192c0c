# SPDX-License-Identifier: BSD-3-Clause
"""Operators run the CPU's kernels: their results have the CPU's bits and layouts."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from support.versions import MINOR

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
COMPLEX = [torch.complex64, torch.complex128]
EVERY = [*FLOATS, *INTEGERS, *COMPLEX, torch.bool]

Both = Callable[..., Any]


def make(shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Tensor:
    """Random values in the domain of every operator here."""
    if dtype == torch.bool:
        return torch.rand(shape) > 0.5
    if dtype in INTEGERS:
        return torch.randint(1, 7, shape).to(dtype)
    return (torch.rand(shape, dtype=torch.float64) + 0.25).to(dtype)


UNARY: dict[str, tuple[Callable[[Tensor], Any], list[torch.dtype]]] = {
    "neg": (torch.neg, [*FLOATS, *INTEGERS, *COMPLEX]),
    "abs": (torch.abs, [*FLOATS, *INTEGERS, *COMPLEX]),
    "exp": (torch.exp, [*FLOATS, *INTEGERS, *COMPLEX]),
    "rsqrt": (torch.rsqrt, [*FLOATS, *INTEGERS]),
    "sum": (torch.sum, EVERY),
    "mean": (torch.mean, [*FLOATS, *COMPLEX]),
    "clone": (torch.clone, EVERY),
    "logical_not": (torch.logical_not, EVERY),
    "to_double": (lambda x: x.to(torch.complex128), EVERY),
    "to_half": (lambda x: x.real.half() if x.is_complex() else x.half(), EVERY),
    "cumsum": (lambda x: x.view(-1).cumsum(0), EVERY),
    "nonzero": (torch.nonzero, EVERY),
    "gelu": (F.gelu, FLOATS),
    "softmax": (lambda x: x.reshape(-1).softmax(0), FLOATS),
    "sigmoid": (torch.sigmoid, [*FLOATS, *INTEGERS]),
    "flip": (lambda x: x.reshape(-1).flip(0), EVERY),
    "fill_": (lambda x: x.fill_(1), EVERY),
    "zero_": (torch.zero_, EVERY),
    "frexp": (torch.frexp, [torch.float32, torch.float64]),
    "empty_like": (lambda x: torch.empty_like(x).zero_(), EVERY),
}
SHAPES = [(), (0,), (3, 0, 2), (1,), (7,), (33, 5), (2, 3, 4, 5)]


@pytest.mark.parametrize("name", UNARY)
def test_unary_operator_has_the_bits_of_the_cpu(both: Both, name: str) -> None:
    function, dtypes = UNARY[name]
    for dtype in dtypes:
        for shape in SHAPES:
            both(function, make(shape, dtype))


BINARY = [
    torch.add,
    torch.sub,
    torch.mul,
    torch.div,
    torch.maximum,
    torch.pow,
    torch.eq,
    torch.lt,
    torch.remainder,
    torch.floor_divide,
    torch.atan2,
]


@pytest.mark.parametrize("function", BINARY, ids=lambda each: each.__name__)
def test_binary_operator_promotes_and_broadcasts_as_on_the_cpu(
    both: Both, function: Callable[..., Tensor]
) -> None:
    chooser = random.Random(0)
    shapes = [((4, 5), (4, 5)), ((4, 1), (5,)), ((), (3,)), ((), ()), ((0, 3), (3,))]
    dtypes = [torch.float32, torch.float64, torch.bfloat16, torch.int16, torch.int64]
    for left, right in shapes:
        for _ in range(6):
            a, b = chooser.choice(dtypes), chooser.choice(dtypes)
            both(function, make(left, a), make(right, b))
            if function not in (torch.maximum, torch.atan2):  # require tensors
                both(lambda x: function(x, 3), make(left, a))
                both(lambda x: function(x, 2.5), make(left, a))


def test_python_numbers_and_tensors_without_dimensions_do_not_widen(
    both: Both,
) -> None:
    half = make((3,), torch.float16)
    assert both(lambda x: x * 2.5, half).dtype == torch.float16
    assert both(lambda x: 2.5 - x, half).dtype == torch.float16
    assert both(lambda x, y: x * y, half, make((), torch.float64)).dtype == (
        torch.float16
    )
    assert both(lambda x: x + 1j, make((3,))).dtype == torch.complex64
    assert both(lambda x: x * 2.5, make((3,), torch.int8)).dtype == torch.float32


def layouts() -> dict[str, Tensor]:
    base = make((6, 8))
    image = make((2, 3, 5, 4))
    spectrum = make((4, 5), torch.complex64)
    return {
        "transposed": base.t(),
        "strided": base[1::2, ::3],
        "narrowed": base.narrow(1, 3, 2),
        "expanded": make((5, 1)).expand(5, 4),
        "expanded_scalar": make(()).expand(3, 2),
        "overlapping": make((10,)).as_strided((4, 3), (2, 1), 1),
        "huge_stride": make(((1 << 17) + 1,)).as_strided((2, 3), (1 << 16, 1 << 15)),
        "channels_last": image.contiguous(memory_format=torch.channels_last),
        "permuted": image.permute(3, 0, 2, 1),
        "unsqueezed": base[2].unsqueeze(0),
        "conj": spectrum.conj(),
        "conj_transposed": spectrum.mH,
        "neg": spectrum.conj().imag,
        "real": spectrum.real,
        "empty_view": base[3:3],
        "odd_offset": base.view(-1)[1:],
    }


@pytest.mark.parametrize("name", layouts())
def test_every_layout_is_read_and_kept_as_on_the_cpu(both: Both, name: str) -> None:
    x = layouts()[name]
    both(torch.clone, x)
    both(torch.exp, x)
    both(lambda x: x + x, x)
    both(lambda x: x * 2, x)
    both(torch.sum, x)
    both(lambda x: x.sum(0, keepdim=True), x)
    both(lambda x: x.contiguous(), x)
    both(lambda x: torch.cat([x, x]), x)
    both(lambda x: torch.where(x == x, x, 0), x)
    both(lambda x: x.reshape(-1), x)
    both(torch.empty_like if x.numel() == 0 else torch.zeros_like, x)


WRITABLE = [
    name
    for name in layouts()
    if name not in ("expanded", "expanded_scalar", "overlapping")
]


@pytest.mark.parametrize("name", WRITABLE)
def test_operators_in_place_write_through_every_layout(both: Both, name: str) -> None:
    x = layouts()[name]
    both(lambda x: x.mul_(2), x)
    both(lambda x: x.add_(x), x)
    both(lambda x: x.copy_(x.clone().exp()), x)
    both(lambda x: x.zero_(), x)


def test_operator_in_place_refuses_an_expanded_tensor(to_device) -> None:
    with pytest.raises(RuntimeError, match="more than one element of the written-to"):
        to_device(layouts()["expanded"]).exp_()


RESULTS: dict[str, Callable[[Tensor], Any]] = {
    "topk": lambda x: x.topk(3, dim=1),
    "sort": lambda x: x.sort(dim=0, stable=True),
    "max": lambda x: x.max(dim=1),
    "median": lambda x: x.median(dim=1),
    "unique": lambda x: (x * 3).int().unique(return_inverse=True, return_counts=True),
    "unique_consecutive": lambda x: (x > 0.6).unique_consecutive(return_counts=True),
    "svd": torch.linalg.svd,
    "qr": torch.linalg.qr,
    "eigh": lambda x: torch.linalg.eigh(x @ x.T),
    "eig": lambda x: torch.linalg.eigvals(x @ x.T),
    "solve": lambda x: torch.linalg.solve(x @ x.T + 1, x),
    "slogdet": lambda x: torch.linalg.slogdet(x @ x.T),
    "lu": lambda x: torch.linalg.lu_factor(x @ x.T),
    "var_mean": lambda x: torch.var_mean(x, dim=0),
    "aminmax": lambda x: x.aminmax(dim=1),
    "batch_norm": lambda x: torch.native_batch_norm(
        x, None, None, None, None, True, 0.1, 1e-5
    ),
    "histogram": lambda x: torch.histogram(x, 4),
    "nonzero": lambda x: (x > 0.6).nonzero(as_tuple=True),
    "masked_select": lambda x: x.masked_select(x > 0.7),
    "split": lambda x: x.split(2, dim=1),
    "split_copy": lambda x: torch.split_copy(x, 2, 1),
    "chunk": lambda x: x.chunk(3),
    "unbind": lambda x: x.unbind(1),
    "max_pool": lambda x: F.max_pool1d(x, 2, return_indices=True),
    "fft": torch.fft.fft2,
    "rfft": lambda x: torch.fft.irfft(torch.fft.rfft(x), n=x.size(1)),
    "item": lambda x: (x[2, 3].item(), x.tolist(), x.sum().item() > 0, len(x)),
    "equal": lambda x: torch.equal(x, x.clone()),
    "allclose": lambda x: torch.allclose(x, x + 1),
}


@pytest.mark.parametrize("name", RESULTS)
def test_operator_with_other_results_has_those_of_the_cpu(
    both: Both, name: str
) -> None:
    both(RESULTS[name], make((6, 8)))
    both(RESULTS[name], make((8, 6), torch.float64).t())


NETWORK: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "matmul": (torch.matmul, [(5, 6), (6, 7)]),
    "bmm": (torch.bmm, [(3, 5, 6), (3, 6, 7)]),
    "linear": (F.linear, [(5, 6), (7, 6), (7,)]),
    "einsum": (lambda a, b: torch.einsum("bij,bjk->ik", a, b), [(3, 5, 6), (3, 6, 7)]),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (6,), w, b), [(5, 6), (6,), (6,)]),
    "group_norm": (lambda x, w, b: F.group_norm(x, 2, w, b), [(2, 4, 9), (4,), (4,)]),
    "conv2d": (
        lambda x, w, b: F.conv2d(x, w, b, padding=1, stride=2),
        [(2, 4, 9, 9), (6, 4, 3, 3), (6,)],
    ),
    "conv2d_groups": (
        lambda x, w: F.conv2d(x, w, groups=2, dilation=2),
        [(2, 4, 9, 9), (6, 2, 3, 3)],
    ),
    "conv_transpose2d": (
        lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2, output_padding=1),
        [(2, 4, 5, 5), (4, 3, 3, 3), (3,)],
    ),
    "conv_transpose_groups": (
        lambda x, w, b: F.conv_transpose1d(x, w, b, groups=2),
        [(2, 4, 5), (4, 3, 3), (6,)],
    ),
    "conv1d": (lambda x, w: F.conv1d(x, w, padding="same"), [(2, 3, 9), (4, 3, 3)]),
    "conv3d": (F.conv3d, [(1, 2, 4, 4, 4), (3, 2, 2, 2, 2)]),
    "attention": (F.scaled_dot_product_attention, [(2, 2, 5, 8)] * 3),
    "attention_causal": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        [(2, 2, 5, 8)] * 3,
    ),
    "attention_mask": (
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m),
        [(2, 2, 5, 8)] * 3 + [(5, 5)],
    ),
    "interpolate": (
        lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear"),
        [(1, 2, 4, 4)],
    ),
    "avg_pool": (lambda x: F.avg_pool2d(x, 2), [(1, 2, 4, 4)]),
    "log_softmax": (lambda x: F.log_softmax(x, 1), [(4, 5)]),
    "cdist": (torch.cdist, [(4, 5), (3, 5)]),
    "prelu": (F.prelu, [(4, 5), (5,)]),
    "norm": (lambda x: x.norm(dim=1), [(4, 5)]),
    "pad": (lambda x: F.pad(x, (1, 2), mode="reflect"), [(1, 4, 5)]),
    "grid_sample": (
        lambda x, g: F.grid_sample(x, g, align_corners=False),
        [(1, 2, 4, 4), (1, 3, 3, 2)],
    ),
}


@pytest.mark.parametrize("name", NETWORK)
def test_forward_and_backward_have_the_bits_of_the_cpu(both: Both, name: str) -> None:
    function, shapes = NETWORK[name]

    def run(*inputs: Tensor) -> list[Tensor]:
        leaves = [each.clone().requires_grad_() for each in inputs]
        out = function(*leaves)
        gradients = torch.autograd.grad(out, leaves, torch.ones_like(out) * 0.5)
        return [out.detach(), *gradients]

    both(run, *[make(shape) for shape in shapes])


FACTORIES: dict[str, Callable[[str], Tensor]] = {
    "zeros": lambda d: torch.zeros(3, 2, device=d),
    "full": lambda d: torch.full((2, 2), 7, device=d),
    "arange": lambda d: torch.arange(1, 9, 3, device=d),
    "linspace": lambda d: torch.linspace(0, 1, 7, device=d),
    "logspace": lambda d: torch.logspace(0, 1, 7, device=d),
    "eye": lambda d: torch.eye(3, 4, device=d),
    "tensor": lambda d: torch.tensor([[1, 2], [3, 4]], device=d),
    "scalar_tensor": lambda d: torch.scalar_tensor(2.5, device=d),
    "tril_indices": lambda d: torch.tril_indices(3, 4, device=d),
    "hann_window": lambda d: torch.hann_window(9, device=d),
    "full_like": lambda d: torch.full_like(torch.ones(2), 3, device=d),
    "new_zeros": lambda d: torch.ones(1, device=d).new_zeros(3),
    "empty_strided": lambda d: torch.empty_strided((2, 3), (1, 2), device=d).fill_(1),
    "channels_last": lambda d: torch.empty(
        (1, 2, 3, 4), device=d, memory_format=torch.channels_last
    ).fill_(2),
    "fftfreq": lambda d: torch.fft.fftfreq(5, device=d),
    "complex": lambda d: torch.ones(3, dtype=torch.complex64, device=d),
    "float8": lambda d: torch.ones(3, device=d).to(torch.float8_e4m3fn).float(),
}


@pytest.mark.parametrize("name", FACTORIES)
def test_factory_has_the_result_of_the_cpu(
    device: str, same: Callable[[Any, Any], None], name: str
) -> None:
    expected = FACTORIES[name]("cpu")
    same(FACTORIES[name](device), expected)
    other = FACTORIES[name](f"{device}:1")
    assert other.device.index == 1
    same(other, expected)


def test_factory_under_a_device_context_uses_that_device(device: str) -> None:
    with torch.device(f"{device}:1"):
        assert torch.arange(3).device == torch.device(device, 1)
        assert torch.randn(2).device == torch.device(device, 1)
        assert torch.tensor([1.0]).device == torch.device(device, 1)


@pytest.mark.filterwarnings("ignore:B?Complex.* support is experimental")
@pytest.mark.parametrize("name", ["complex32", "bcomplex32", "complex128"])
def test_item_of_complex_dtypes(device: str, name: str) -> None:
    if not hasattr(torch, name):
        pytest.skip(f"torch.{name} is newer")  # bcomplex32: since torch 2.14
    x = torch.tensor([1 - 2j]).to(getattr(torch, name))
    assert x.to(device).item() == x.item() == 1 - 2j


@pytest.mark.parametrize("name", ["complex32", "bcomplex32"])
def test_memory_of_a_complex_dtype_of_16_bits_warns_as_the_cpus(
    device: str, name: str
) -> None:
    if not hasattr(torch, name):
        pytest.skip(f"torch.{name} is newer")  # bcomplex32: since torch 2.14
    texts = []
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        for place in ("cpu", device):
            with pytest.warns(UserWarning, match="support is experimental") as caught:
                torch.empty(2, dtype=getattr(torch, name), device=place)
            texts.append(str(caught[0].message).split(" (Triggered")[0])
    finally:
        torch.set_warn_always(before)
    assert texts[0] == texts[1]


def test_float64_keeps_its_precision_in_item(device: str) -> None:
    value = 1 + 2**-50
    assert torch.tensor(value, dtype=torch.float64, device=device).item() == value
    assert torch.tensor(2**62 + 1, device=device).item() == 2**62 + 1
    assert torch.tensor(2 - 3j, device=device).item() == 2 - 3j
    assert torch.tensor(True, device=device).item() is True


@pytest.mark.parametrize("shape", [(1,), (4, 1)])
def test_norm_of_a_number_does_not_depend_on_earlier_calls(
    to_device, shape: tuple[int, ...]
) -> None:
    # With a dim, the CPU's kernel reads the first size of a 0-dim tensor.
    number = torch.full((), -4.826984902407649, dtype=torch.float64)
    expected = torch.linalg.vector_norm(number, ord=0.9, dim=-1)
    mine, other = to_device(number), to_device(torch.ones(shape, dtype=torch.float64))

    def resize() -> None:
        with pytest.warns(UserWarning, match="An output with one or more elements"):
            torch.sum(other, (), out=other.new_empty(1))

    for call in (lambda: other + other, other.sum, resize):
        call()
        norm = torch.linalg.vector_norm(mine, ord=0.9, dim=-1)
        assert norm.cpu().equal(expected)


def test_gradients_of_a_channels_last_group_norm_differ_only_by_rounding(
    device: str,
) -> None:
    """Until torch 2.13, the backward pass for other devices than the CPU makes the
    inputs contiguous, and so adds the same numbers in another order.
    """
    torch.manual_seed(0)
    x = torch.randn(4, 8, 16, 16).contiguous(memory_format=torch.channels_last)
    weight, bias, gradient = torch.randn(8), torch.randn(8), torch.randn(x.shape)

    def run(device: str, dtype: torch.dtype) -> list[Tensor]:
        leaves = [
            each.detach().to(device, dtype).requires_grad_()
            for each in (x, weight, bias)
        ]
        y = F.group_norm(leaves[0], 4, leaves[1], leaves[2])
        return [y, *torch.autograd.grad(y, leaves, gradient.to(device, dtype))]

    ours, cpu = run(device, torch.float32), run("cpu", torch.float32)
    assert torch.equal(ours[0].cpu(), cpu[0])
    equal = all(
        torch.equal(result.cpu(), expected)
        for result, expected in zip(ours[1:], cpu[1:], strict=True)
    )
    assert equal is (MINOR != "2.13")
    for result, expected in zip(ours, run("cpu", torch.float64), strict=True):
        torch.testing.assert_close(
            result.cpu().double(), expected, rtol=1e-5, atol=1e-4
        )
