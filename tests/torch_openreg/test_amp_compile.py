# SPDX-License-Identifier: BSD-3-Clause
"""Autocast in compiled functions: the bits of eager mode, and the CPU's results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.testing import CompileCounterWithBackend

pytestmark = pytest.mark.usefixtures("fresh_compiler")

LOW = [torch.float16, torch.bfloat16]
BACKENDS = ["eager", "aot_eager"]
# AOTAutograd traces without the cache of casts, on every device.
CACHED = [("eager", True), ("aot_eager", False)]

Function = Callable[[Tensor], Any]


def compiled(function: Function, backend: str) -> tuple[Function, Any]:
    """Compiles a function as one graph; returns it with a count of compilations."""
    counter = CompileCounterWithBackend(backend)
    return torch.compile(function, backend=counter, fullgraph=True), counter


def region_inside(dtype: torch.dtype) -> Function:
    """Returns a function that opens the region itself."""

    def step(x: Tensor) -> tuple[Tensor, ...]:
        with torch.autocast("openreg", dtype=dtype):
            product = x @ x
            return product, product.softmax(0), product + x

    return step


def nested(dtype: torch.dtype) -> Function:
    """Returns a function with nested regions."""
    other = torch.bfloat16 if dtype is torch.float16 else torch.float16

    def step(x: Tensor) -> tuple[Tensor, ...]:
        with torch.autocast("openreg", dtype=dtype):
            outer = x @ x
            with torch.autocast("openreg", enabled=False):
                full = x @ x
            with torch.autocast("openreg", dtype=other):
                inner = x @ x
            again = x @ x
        return outer, full, inner, again, x @ x

    return step


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", LOW)
@pytest.mark.parametrize("make", [region_inside, nested])
def test_regions_in_a_compiled_function_have_the_bits_of_eager_mode(
    make: Callable[[torch.dtype], Function], dtype: torch.dtype, backend: str
) -> None:
    x = torch.randn(5, 5, device="openreg")
    expected = make(dtype)(x)
    function, counter = compiled(make(dtype), backend)
    for _ in range(2):
        result = function(x)
        assert [y.dtype for y in result] == [y.dtype for y in expected]
        assert all(torch.equal(y, z) for y, z in zip(result, expected, strict=True))
    assert counter.frame_count == 1
    cpu = x.cpu()
    assert torch.equal(result[0].cpu(), cpu.to(dtype) @ cpu.to(dtype))
    assert not torch.is_autocast_enabled("openreg")


@pytest.mark.parametrize("backend", BACKENDS)
def test_compiled_function_is_recompiled_for_the_region_around_it(
    backend: str,
) -> None:
    x = torch.randn(4, 4, device="openreg")
    function, counter = compiled(lambda t: t @ t, backend)
    for dtype in LOW:
        with torch.autocast("openreg", dtype=dtype):
            result = function(x)
        assert result.dtype is dtype
        assert torch.equal(result.cpu(), x.cpu().to(dtype) @ x.cpu().to(dtype))
    assert torch.equal(function(x).cpu(), x.cpu() @ x.cpu())
    assert counter.frame_count == 3  # one for each type, and one without a region


def steps(model: nn.Module, x: Tensor, dtype: torch.dtype) -> list[Tensor]:
    """Trains for three steps in the type; returns losses and parameters."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(3):
        with torch.autocast(x.device.type, dtype=dtype):
            loss = model(x).float().square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach().cpu())
    return [*losses, *(p.detach().cpu() for p in model.parameters())]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", LOW)
def test_compiled_model_trains_with_the_bits_of_eager_mode(
    dtype: torch.dtype, backend: str
) -> None:
    torch.manual_seed(0)
    cpu = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 3))
    state = {name: value.clone() for name, value in cpu.state_dict().items()}
    x = torch.randn(7, 6)

    def fresh() -> nn.Module:
        model = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8))
        model = model.append(nn.Linear(8, 3)).openreg()
        model.load_state_dict(state)
        return model

    eager = steps(fresh(), x.openreg(), dtype)
    model = fresh()
    model.compile(backend=backend)
    for mine, other in zip(steps(model, x.openreg(), dtype), eager, strict=True):
        assert torch.equal(mine, other)
    for mine, other in zip(steps(cpu, x, dtype), eager, strict=True):
        torch.testing.assert_close(mine, other, atol=0.02, rtol=0.02)


@pytest.mark.parametrize(("backend", "cached"), CACHED)
def test_compiled_region_sums_the_gradients_of_a_weight_that_it_uses_twice(
    backend: str, cached: bool
) -> None:
    weight = torch.randn(4, 4, device="openreg", requires_grad=True)
    x = torch.randn(4, 4, device="openreg")

    def loss(x: Tensor, cache: bool = True) -> Tensor:
        with torch.autocast("openreg", dtype=torch.bfloat16, cache_enabled=cache):
            return ((x @ weight) @ weight).float().sum()

    loss(x, cache=cached).backward()
    assert weight.grad is not None
    expected = weight.grad.clone()
    weight.grad = None
    compiled(loss, backend)[0](x).backward()
    assert weight.grad.dtype is torch.float32
    assert torch.equal(weight.grad, expected)


class Cube(torch.autograd.Function):
    """Computes in float32 in any region."""

    @staticmethod
    @torch.amp.custom_fwd(device_type="openreg", cast_inputs=torch.float32)
    def forward(ctx: Any, x: Tensor) -> Tensor:
        """Multiplies matrices."""
        ctx.save_for_backward(x)
        return x @ x @ x

    @staticmethod
    @torch.amp.custom_bwd(device_type="openreg")
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        """Returns the matrix powers as if the matrix were symmetric."""
        (x,) = ctx.saved_tensors
        return grad @ x @ x * 3


# Dynamo creates an instance itself.
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.parametrize(("backend", "cached"), CACHED)
def test_custom_function_in_a_compiled_region_has_the_bits_of_eager_mode(
    backend: str, cached: bool
) -> None:
    def step(x: Tensor, cache: bool = True) -> Tensor:
        with torch.autocast("openreg", cache_enabled=cache):
            return Cube.apply(x @ x)

    results = []
    x = torch.randn(4, 4, device="openreg")
    for function in (
        lambda x: step(x, cache=cached),
        torch.compile(step, backend=backend),
    ):
        y = x.clone().requires_grad_()
        result = function(y)
        assert result.dtype is torch.float32
        result.sum().backward()
        assert y.grad is not None
        results.append((result.detach(), y.grad))
    assert all(map(torch.equal, *results))


@pytest.mark.parametrize("way", ["foreach", "fused"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_scaler_skips_the_bad_step_of_a_compiled_model(backend: str, way: str) -> None:
    def train(backend: str | None) -> list[Tensor]:
        torch.manual_seed(0)
        model = nn.Linear(4, 3).openreg()
        if backend:
            model.compile(backend=backend)
        options: dict[str, Any] = {way: True}
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, **options)
        scaler = torch.amp.GradScaler("openreg", init_scale=16.0, growth_interval=2)
        values = []
        for step in range(4):
            x = torch.randn(5, 4).openreg()
            x[0, 0] = float("inf") if step == 1 else 1
            with torch.autocast("openreg"):
                loss = model(x).float().square().mean()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            values += [model.weight.detach().cpu(), torch.tensor(scaler.get_scale())]
        return values

    expected = train(None)
    assert [scale.item() for scale in expected[1::2]] == [16, 8, 8, 16]
    assert torch.equal(expected[0], expected[2])
    assert not torch.equal(expected[2], expected[4])
    assert all(map(torch.equal, train(backend), expected))


@pytest.mark.parametrize("backend", BACKENDS)
def test_banned_operator_is_refused_in_a_compiled_region(backend: str) -> None:
    x = torch.rand(3, device="openreg")

    def loss(x: Tensor) -> Tensor:
        with torch.autocast("openreg"):
            return nn.functional.binary_cross_entropy(x, x)

    with pytest.raises(Exception, match="binary_cross_entropy_with_logits"):
        compiled(loss, backend)[0](x)


@pytest.mark.parametrize("backend", ["no compiler", *BACKENDS])
@pytest.mark.parametrize("dtype", LOW)
def test_custom_operator_follows_the_rule_that_it_registers(
    dtype: torch.dtype, backend: str
) -> None:
    name = f"amp_rules::{backend.replace(' ', '_')}_{str(dtype)[6:]}"

    @torch.library.custom_op(name, mutates_args=())
    def twice(x: Tensor) -> Tensor:
        return x * 2

    twice.register_fake(torch.empty_like)
    twice.register_autograd(lambda ctx, grad: grad * 2)
    twice.register_autocast("openreg", dtype)
    function: Function = twice
    if backend != "no compiler":
        function = compiled(twice, backend)[0]
    x = torch.randn(3, device="openreg", requires_grad=True)
    assert function(x).dtype is torch.float32
    with torch.autocast("openreg", dtype=torch.float16):
        y = function(x)
    assert y.dtype is dtype
    assert torch.equal(y.cpu(), x.cpu().to(dtype) * 2)
    y.float().sum().backward()
    assert x.grad is not None
    assert x.grad.dtype is torch.float32
    assert x.grad.tolist() == [2, 2, 2]
