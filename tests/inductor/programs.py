# SPDX-License-Identifier: BSD-3-Clause
"""Programs that are compiled for the CPU and for the device.

    python programs.py [NAME...]

Each runs on both devices with the same numbers. A line of JSON per program reports
whether the results are bitwise equal, and whether compiled kernels produced the
device's results.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import checkpoint

import openreg_aten
from torch_openreg import openreg

Program = Callable[[str], Any]
PROGRAMS: dict[str, Program] = {}


def program(run: Program) -> Program:
    """Adds a function of a device to the programs; its results are compared."""
    PROGRAMS[run.__name__] = run
    return run


def function(*shapes: Any, **options: Any) -> Callable[[Callable[..., Any]], Program]:
    """Adds a function of tensors, compiled as one graph.

    Args:
        shapes: Shapes of the arguments; a value that is not a tuple is the argument
            itself.
        options: Of ``torch.compile``.
    """

    def add(run: Callable[..., Any]) -> Program:
        def on(device: str) -> Any:
            torch.manual_seed(0)
            made = [make(shape).to(device) for shape in shapes]
            torch.manual_seed(1)  # drawn by the CPU's generator
            return torch.compile(run, fullgraph=True, **options)(*made)

        on.__name__ = run.__name__
        return program(on)

    return add


def make(shape: Any) -> Tensor:
    """Makes an argument on the CPU."""
    return shape if isinstance(shape, Tensor) else torch.randn(shape)


def trained(model: nn.Module, *batches: Any, optimizer: Any = torch.optim.SGD) -> Any:
    """Trains a compiled model; returns the losses and the parameters.

    Args:
        model: A module with a scalar loss.
        batches: The arguments of each step.
        optimizer: A class of optimizers.
    """
    compiled = torch.compile(model, fullgraph=True)
    steps = optimizer(model.parameters(), lr=0.05)
    losses = []
    for batch in batches:
        loss = compiled(*batch)
        loss.backward()
        steps.step()
        steps.zero_grad()
        losses.append(loss.detach())
    return losses, [parameter.detach() for parameter in model.parameters()]


def model_of(make_model: Callable[[], nn.Module], device: str) -> nn.Module:
    """Makes a model with the same parameters on any device."""
    torch.manual_seed(1)
    return make_model().to(device)


# ---- operators -------------------------------------------------------------------


@function((100, 33), (33,))
def pointwise(x: Tensor, y: Tensor) -> Tensor:
    return (x.sin() * y + x.sigmoid().exp() - y.tanh()) / (x.abs() + 1)


@function((300, 200))
def large_pointwise(x: Tensor) -> Tensor:
    return torch.relu(x) * 3 + x.erf()


@function((64, 500))
def reductions(x: Tensor) -> Any:
    return x.sum(0), x.mean(1), x.amax(), x.var(1), x.argmax(1), x.prod(0)


@function((20, 30, 40))
def softmax(x: Tensor) -> Any:
    return x.softmax(1), x.log_softmax(-1), x.logsumexp(0)


@function((17, 48), (48,), (48,))
def layer_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.layer_norm(x, (48,), weight, bias).relu()


@function((30, 40), (40, 50), (50,))
def products(x: Tensor, y: Tensor, bias: Tensor) -> Any:
    return x @ y, torch.addmm(bias, x, y).relu(), (x @ y).t() @ x


@function((4, 1, 30), (4, 30, 1))
def thin_products(x: Tensor, y: Tensor) -> Any:
    return x @ y, x[0] @ y[0], (y @ x).sum(0)


@function((8, 12), torch.tensor([3, 0, 7, 3]))
def indices(x: Tensor, at: Tensor) -> Any:
    return x[at] * 2, x.index_select(0, at).sum(0), x.gather(0, at.view(4, 1))


@function((50, 16), torch.arange(20) % 50)
def embedding(weight: Tensor, at: Tensor) -> Tensor:
    return F.embedding(at, weight).sum(0)


@function((40, 10), torch.arange(40) % 10)
def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy(logits, labels)


@function((2, 3, 20, 8), (2, 3, 20, 8), (2, 3, 20, 8))
def attention(query: Tensor, key: Tensor, value: Tensor) -> Any:
    return (
        F.scaled_dot_product_attention(query, key, value),
        F.scaled_dot_product_attention(query, key, value, is_causal=True) * 2,
    )


@function((6, 9), (6, 9))
def shapes(x: Tensor, y: Tensor) -> Any:
    joined = torch.cat([x, y * 2], 1)
    return joined, F.pad(x, (1, 2)), torch.stack([x, y]).flip(0), x.t().contiguous() + 1


@function((12, 30))
def scans(x: Tensor) -> Any:
    return x.cumsum(1) * 2, x.sort(1)[0] + 1, x.topk(3)[1]


@function(torch.arange(-50, 50), torch.arange(100) % 7 + 1)
def integers(x: Tensor, y: Tensor) -> Any:
    return x // y, x % y, x * y, (x & y) << 1, x.float() / y


@function(torch.randn(40, 30).bfloat16(), torch.randn(40, 30).half())
def low_precision(x: Tensor, y: Tensor) -> Any:
    return x.exp() * 2, y.sum(1) + 1, (x.float() * y).sum()


@function((30, 30), torch.tensor(3.0))
def scalars(x: Tensor, y: Tensor) -> Tensor:
    return x * y + 2.5


@program
def scalar_of_the_host(device: str) -> Any:
    torch.manual_seed(0)
    x = torch.randn(30, 30).to(device)
    half = torch.tensor(0.5)
    return torch.compile(lambda x, y: x * y + 1, fullgraph=True)(x, half)


@function((500,))
def dropout(x: Tensor) -> Any:
    return F.dropout(x, 0.3), torch.rand_like(x) + 1, torch.randn_like(x) * x


@function((2, 3, 16, 16), (4, 3, 3, 3), (4,))
def convolution(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.conv2d(x, weight, bias, padding=1).relu()


@function((2, 4, 12, 12))
def pools(x: Tensor) -> Any:
    return F.max_pool2d(x, 2) + 1, F.avg_pool2d(x, 3), F.interpolate(x, scale_factor=2)


@function((5, 7))
def conditions(x: Tensor) -> Any:
    return torch.where(x > 0, x, -x), x.clamp(-0.5, 0.5), x.masked_fill(x < 0, 7)


@function((200, 10), torch.arange(200) % 5, (5, 10))
def scatters(x: Tensor, at: Tensor, into: Tensor) -> Any:
    return into.index_add(0, at, x), into.scatter_add(0, at[:, None].expand(200, 10), x)


@function(torch.randn(10, 4, dtype=torch.double), torch.randn(4, dtype=torch.double))
def doubles(x: Tensor, y: Tensor) -> Any:
    return (x * y).sum(1), x.std(0), torch.special.erfinv(y / 10)


@function((2, 6, 5, 5), (6,), (6,))
def norms(x: Tensor, weight: Tensor, bias: Tensor) -> Any:
    mean, variance = torch.zeros_like(weight), torch.ones_like(weight)
    return (
        F.group_norm(x, 3, weight, bias),
        F.batch_norm(x, mean, variance, weight, bias),
        F.instance_norm(x) * 2,
        F.rms_norm(x, (5,)) + 1,
        F.normalize(x, dim=1),
    )


@function((3, 4, 5), (3, 5, 6), (3, 4, 6))
def batched_products(x: Tensor, y: Tensor, z: Tensor) -> Any:
    return (
        torch.einsum("bij,bjk->bik", x, y).relu(),
        torch.baddbmm(z, x, y, beta=0.5),
        torch.einsum("bij,bkj->ik", x, y.transpose(1, 2)) + 1,
    )


@function((2, 4, 9, 9), (4, 2, 3, 3), (8, 2, 3, 3), (2, 4, 9))
def other_convolutions(x: Tensor, up: Tensor, grouped: Tensor, line: Tensor) -> Any:
    return (
        F.conv_transpose2d(x, up, stride=2).relu(),
        F.conv2d(x, grouped, groups=2, stride=2) * 2,
        F.conv1d(line, grouped[:, :, 0], groups=2, padding=1),
    )


@function((20, 8), torch.arange(20) % 5, torch.tensor([1, 3, 1]))
def indexed_writes(x: Tensor, at: Tensor, rows: Tensor) -> Any:
    zeros = torch.zeros(5, 8, device=x.device)
    reduced = zeros.scatter_reduce(0, at[:, None].expand(20, 8), x, "amax")
    written = x.clone()
    written[2:9:3, ::2] = 7
    written[rows, 5] = -1
    return reduced + 1, written, x.index_fill(0, rows, 0.5)


@function((16, 16), torch.linspace(-2, 2, 9))
def searches(x: Tensor, edges: Tensor) -> Any:
    return (
        torch.bucketize(x, edges) * 2,
        torch.searchsorted(edges, x) + 1,
        F.one_hot(x.argmax(1), 16).float() @ x,
        x.tril() + x.triu(2),
        torch.quantile(x, 0.3, dim=1) + x.median(1)[0],
    )


@function(torch.randn(6, 8, dtype=torch.cfloat))
def complex_numbers(x: Tensor) -> Any:
    return x * x.conj() + 1j, x.abs().sum(), torch.fft.fft(x).real * 2


@function((4, 5, 5))
def linear_algebra(x: Tensor) -> Any:
    spd = x @ x.mT + 5 * torch.eye(5, device=x.device)
    return (
        torch.linalg.cholesky(spd) * 2,
        torch.linalg.solve(spd, x) + 1,
        torch.linalg.det(spd).log(),
    )


@function(torch.randn(6, 6) > 0, torch.randn(6, 6) > 1)
def booleans(x: Tensor, y: Tensor) -> Any:
    return x & ~y, (x ^ y).sum(1), x.any(0), y.all(), torch.where(x, 1.5, -2.0)


@function(torch.arange(-50, 50).int(), torch.arange(100).int() % 7 + 1)
def divisions(x: Tensor, y: Tensor) -> Any:
    return (
        torch.div(x, y, rounding_mode="trunc") + 1,
        torch.div(x, y, rounding_mode="floor") * 2,
        torch.fmod(x, y),
        torch.div(x.to(torch.uint8), 3, rounding_mode="trunc"),
        torch.div(x.long()[::2], y.long()[::2], rounding_mode="trunc"),
    )


@function((4, 30))
def random_numbers(x: Tensor) -> Any:
    return (
        torch.bernoulli(x.sigmoid()) + x,
        torch.randint(0, 9, (7,), device=x.device) * 2,
        torch.empty_like(x).uniform_(2, 3) - 1,
        F.gumbel_softmax(x, dim=1),
    )


@function((12, 20))
def windows(x: Tensor) -> Any:
    return (
        x.unfold(1, 5, 3).sum(2),
        torch.as_strided(x, (4, 5), (20, 2), 3) * 2,
        x[::2, 1:-1].t().reshape(-1) + 1,
        x.view(3, 4, 20).permute(2, 0, 1).contiguous(),
        x.view(torch.int32) + 1,
    )


@function((64, 70), (70, 48), mode="max-autotune-no-cudagraphs")
def max_autotune(x: Tensor, y: Tensor) -> Tensor:
    return (x @ y).relu() + 1


@function((2, 3, 16, 8), (2, 3, 16, 8), mode="max-autotune-no-cudagraphs")
def max_autotune_of_batches(x: Tensor, y: Tensor) -> Any:
    return x[0] @ y[0].mT, (x @ y.mT).softmax(-1) @ y


# Tiles of vectors with a scalar remainder loop.
TAILS = [(3, 5, 9), (3, 13, 10), (2, 9, 9), (4, 11, 13)]
MASKS = [torch.arange(a * b * c).view(a, c, b) % 3 > 0 for a, b, c in TAILS]


@function(*TAILS, *MASKS)
def masked_tails(*given: Tensor) -> Any:
    kept = [
        torch.where(mask.mT, x, 0)
        for x, mask in zip(given[: len(TAILS)], given[len(TAILS) :], strict=True)
    ]
    return [(x.sum((0, 2)), (x * x.exp()).sum((0, 2)), x.sum(1)) for x in kept]


@function((6,), torch.tensor(3.0))
def scalars_of_the_host(x: Tensor, scalar: Tensor) -> Any:
    one, two = torch.tensor(1.0), torch.tensor(2)
    return (
        torch.where(x > 0, one, x),
        torch.fmax(x + 1, one),
        torch.maximum(one, x),
        one - x.sum(),
        two**x,
        torch.atan2(one, x) + (one + 3) * x,
        scalar * x + two,
        torch.where(x > 0, scalar, one),
        torch.addcmul(one, x, x),
        torch.addcdiv(scalar, x, x * x + 1, value=0.5),
        *torch._foreach_addcmul([one, x, scalar], [x, x, x], [x, x + 1, x], value=2),
    )


# ---- features --------------------------------------------------------------------


@program
def dynamic_shapes(device: str) -> Any:
    torch.manual_seed(0)
    compiled = torch.compile(
        lambda x: x.softmax(-1) * x.shape[0], dynamic=True, fullgraph=True
    )
    return [compiled(torch.randn(n, 3 * n).to(device)) for n in (3, 8, 21)]


@program
def autocast(device: str) -> Any:
    model = model_of(lambda: nn.Sequential(nn.Linear(16, 32), nn.GELU()), device)
    x = torch.randn(8, 16, generator=torch.Generator().manual_seed(3)).to(device)

    @torch.compile(fullgraph=True)
    def run(x: Tensor) -> Any:
        with torch.autocast(device, dtype=torch.bfloat16):
            y = model(x)
            return y, y.float().softmax(1)

    return run(x)


@program
def changes_in_place(device: str) -> Any:
    torch.manual_seed(0)
    x, total = torch.randn(40, 5).to(device), torch.zeros(5).to(device)

    @torch.compile(fullgraph=True)
    def run(x: Tensor) -> Tensor:
        total.add_(x.sum(0))
        x.mul_(2)[3:5].zero_()
        return x[1:].view(-1) + 1

    return [run(x), run(x), x, total]


@program
def graph_breaks(device: str) -> Any:
    torch.manual_seed(0)

    @torch.compile
    def run(x: Tensor) -> Tensor:
        y = x.relu() + 1
        if y.sum().item() > 0:
            y = y * 2
        return y.exp()

    return run(torch.randn(20, 5).to(device))


@program
def branches(device: str) -> Any:
    torch.manual_seed(0)
    x = torch.randn(20, 5).to(device)

    @torch.compile(fullgraph=True)
    def run(x: Tensor) -> Any:
        return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos() + 1, (x,))

    return run(x), run(-x)


@program
def backward_of_functions(device: str) -> Any:
    torch.manual_seed(0)
    x = torch.randn(20, 30).to(device).requires_grad_()
    compiled = torch.compile(
        lambda x: (x.softmax(1).log() * x.tanh()).sum(), fullgraph=True
    )
    return torch.autograd.grad(compiled(x), x)


@program
def side_stream(device: str) -> Any:
    torch.manual_seed(0)
    x = torch.randn(200, 30).to(device)
    compiled = torch.compile(lambda x: x.sin() * 2 + x.sum(0), fullgraph=True)
    if device == "cpu":
        return compiled(x)
    stream = torch.Stream(device)
    stream.wait_stream(torch.accelerator.current_stream())
    with stream:
        y = compiled(x)
    torch.accelerator.current_stream().wait_stream(stream)
    return y


@program
def streams_in_a_graph(device: str) -> Any:
    torch.manual_seed(0)
    x = torch.randn(200, 30).to(device)
    side = None if device == "cpu" else torch.Stream(device)

    @torch.compile(fullgraph=True)
    def run(x: Tensor) -> Any:
        y = x * 2
        if side is None:
            z = y.sin() + 1
        else:
            side.wait_stream(torch.accelerator.current_stream())
            with side:
                z = y.sin() + 1
            torch.accelerator.current_stream().wait_stream(side)
        return y.cos(), z.sum(0)

    return run(x)


@program
def second_device(device: str) -> Any:
    torch.manual_seed(0)
    device = "cpu" if device == "cpu" else f"{device}:1"
    x = torch.randn(20, 30).to(device)
    torch.manual_seed(1)

    @torch.compile(fullgraph=True)
    def run(x: Tensor) -> Any:
        return x @ x.t() + torch.ones(20, device=device), F.dropout(x, 0.4) * 2

    results = run(x)
    assert all(str(result.device) == device for result in results)
    return results


@program
def while_loop(device: str) -> Any:
    torch.manual_seed(0)
    x = torch.randn(5, 4).to(device)

    @torch.compile(fullgraph=True)
    def run(x: Tensor, limit: Tensor) -> Any:
        return torch.while_loop(
            lambda n, _: n < limit,
            lambda n, x: (n + 1, x.sin() * 2),
            (torch.zeros((), dtype=torch.int64, device=x.device), x),
        )

    return run(x, torch.tensor(4, device=device)), run(x, torch.tensor(1).to(device))


@torch.library.custom_op("tests_inductor::scaled", mutates_args=())
def scaled(x: Tensor, factor: float) -> Tensor:
    return torch.addcmul(x, x, x, value=factor)


@scaled.register_fake
def _(x: Tensor, factor: float) -> Tensor:
    del factor
    return torch.empty_like(x)


def _keep(ctx: Any, inputs: Any, output: Tensor) -> None:
    del output
    x, ctx.factor = inputs
    ctx.save_for_backward(x)


def _differentiate(ctx: Any, gradient: Tensor) -> Any:
    (x,) = ctx.saved_tensors
    return gradient * (1 + 2 * ctx.factor * x), None


scaled.register_autograd(_differentiate, setup_context=_keep)


@torch.library.custom_op("tests_inductor::shift_", mutates_args=("x",))
def shift_(x: Tensor, by: Tensor) -> None:
    x.add_(by.sum())


@program
def custom_operators(device: str) -> Any:
    torch.manual_seed(0)
    x = torch.randn(6, 5).to(device).requires_grad_()

    @torch.compile(fullgraph=True)
    def run(x: Tensor) -> Tensor:
        y = scaled(x.sin(), 0.5) * 2
        total = torch.zeros(5, device=x.device)
        shift_(total, x.detach())
        return (y + total).sum()

    loss = run(x)
    loss.backward()
    return loss, x.grad


class _Cube(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: Tensor) -> Tensor:
        context.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> Tensor:
        (x,) = context.saved_tensors
        return gradients[0] * 3 * x * x


@program
def autograd_function(device: str) -> Any:
    torch.manual_seed(0)
    x = torch.randn(6, 5).to(device).requires_grad_()
    run = torch.compile(lambda x: _Cube.apply(x.cos()).sum(), fullgraph=True)
    return torch.autograd.grad(run(x), x)


@program
def checkpointing(device: str) -> Any:
    def layers() -> nn.Module:
        return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Dropout(0.3))

    model = model_of(layers, device)
    x = torch.ones(4, 8, device=device, requires_grad=True)
    torch.manual_seed(5)

    @torch.compile(fullgraph=True)
    def run(x: Tensor) -> Tensor:
        return checkpoint(model, x, use_reentrant=False).square().sum()

    loss = run(x)
    loss.backward()
    return loss, x.grad, [parameter.grad for parameter in model.parameters()]


@program
def checkpointed_attention(device: str) -> Any:
    """The device's generator is passed to the attention in both passes."""
    torch.manual_seed(0)
    x = torch.randn(2, 4, 32, 16).to(device).requires_grad_()

    def block(x: Tensor) -> Tensor:
        return nn.functional.scaled_dot_product_attention(x, x, x).relu()

    @torch.compile(fullgraph=True)
    def run(x: Tensor) -> Tensor:
        return checkpoint(block, x, use_reentrant=False).square().sum()

    loss = run(x)
    loss.backward()
    return loss, x.grad


@program
def function_transforms(device: str) -> Any:
    torch.manual_seed(0)
    x, weight = torch.randn(6, 5).to(device), torch.randn(5).to(device)

    @torch.compile(fullgraph=True)
    def run(x: Tensor, weight: Tensor) -> Any:
        def loss(weight: Tensor, x: Tensor) -> Tensor:
            return (weight * x).sin().sum()

        each = torch.func.vmap(torch.func.grad(loss), (None, 0))(weight, x)
        return each, torch.func.jvp(lambda w: loss(w, x), (weight,), (weight,))

    return run(x, weight)


@program
def without_gradients(device: str) -> Any:
    model = model_of(lambda: nn.Sequential(nn.Linear(6, 6), nn.ReLU()), device)
    x = torch.ones(3, 6, device=device)
    compiled = torch.compile(model, fullgraph=True)
    with torch.no_grad():
        first = compiled(x)
    with torch.inference_mode():
        second = compiled(x) + 1
    return first, second.clone()


@program
def writes_to_slices(device: str) -> Any:
    torch.manual_seed(0)
    x, cache = torch.randn(3, 4).to(device), torch.zeros(8, 4).to(device)

    @torch.compile(fullgraph=True)
    def run(x: Tensor, cache: Tensor, at: int) -> Tensor:
        cache[at : at + 3] = x * 2
        cache[:, 1].add_(1)
        x.relu_()
        return cache.sum(0)

    return [run(x, cache, at) for at in (0, 2, 5)], x, cache


@program
def views_of_arguments(device: str) -> Any:
    torch.manual_seed(0)
    x = torch.randn(6, 8).to(device)

    @torch.compile(fullgraph=True)
    def run(x: Tensor) -> Any:
        y = x.t()
        y.mul_(2)
        return y, x[1:3], {"sum": [x.sum(1)], "same": x}

    first, second, rest = run(x)
    first[0, 0] = 9  # views of the argument
    assert x[0, 0].item() == 9
    return first, second, rest["sum"], x


@program
def numbers_that_change(device: str) -> Any:
    x = torch.arange(12.0, device=device).view(3, 4)
    compiled = torch.compile(lambda x, n, f: (x * n + f)[: n % 3 + 1], fullgraph=True)
    return [compiled(x, n, f) for n, f in ((2, 0.5), (3, 1.5), (7, 2.5))]


@program
def values_that_decide_shapes(device: str) -> Any:
    torch.manual_seed(0)
    x = torch.randn(9, 4).to(device)

    @torch.compile(fullgraph=True)
    def run(x: Tensor) -> Any:
        return x[x[:, 0] > 0] * 2, (x > 1).nonzero() + 1

    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        return run(x), run(-x)


@program
def recurrent_layers(device: str) -> Any:
    x = torch.ones(5, 3, 6, device=device)
    results = []
    for kind in (nn.LSTM, nn.GRU):
        model = model_of(lambda kind=kind: kind(6, 8, 2), device)
        results.append(torch.compile(lambda x, model=model: model(x * 2)[0] + 1)(x))
    return results


@program
def transformer_layer(device: str) -> Any:
    model = model_of(lambda: nn.TransformerEncoderLayer(16, 4, 32, 0.0), device)
    x = torch.linspace(-1, 1, 3 * 5 * 16).view(5, 3, 16).to(device)
    return torch.compile(model, fullgraph=True)(x)


@program
def regional_compilation(device: str) -> Any:
    model = model_of(Gpt, device).eval()
    for layer in model.layers:
        layer.compile(fullgraph=True)
    return model((torch.arange(64).view(4, 16) * 7 % 50).to(device))


@program
def freezing(device: str) -> Any:
    def layers() -> nn.Module:
        return nn.Sequential(
            nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten()
        )

    model = model_of(layers, device).eval()
    x = torch.ones(2, 3, 6, 6, device=device)
    with torch._inductor.config.patch(freezing=True), torch.no_grad():
        return torch.compile(model, fullgraph=True)(x)


@program
def exported(device: str) -> Any:
    model = model_of(lambda: nn.Sequential(nn.Linear(6, 7), nn.Tanh()), device)
    x = torch.ones(4, 6, device=device)
    batch = torch.export.Dim("batch", min=2, max=64)
    program = torch.export.export(model, (x,), dynamic_shapes=({0: batch},))
    stored = io.BytesIO()
    torch.export.save(program, stored)
    stored.seek(0)
    module = torch.export.load(stored).module()
    return module(x), torch.compile(module)(x[:3]) * 2


@program
def aot_eager(device: str) -> Any:
    model = model_of(lambda: nn.Sequential(nn.Linear(6, 7), nn.Tanh()), device)
    x = torch.ones(4, 6, device=device)
    loss = torch.compile(model, backend="aot_eager")(x).sum()
    loss.backward()
    return loss, [parameter.grad for parameter in model.parameters()]


@program
def both_devices(device: str) -> Any:
    torch.manual_seed(0)
    x, there = torch.randn(5, 4).to(device), torch.randn(5, 4)

    @torch.compile(fullgraph=True)
    def run(x: Tensor, there: Tensor) -> Any:
        y = (there * 2 + 1).to(x.device)
        return x + y, (x * 3).cpu() + there

    return run(x, there)


# ---- training --------------------------------------------------------------------


class Loss(nn.Module):
    """A model and the mean square of its output."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return F.mse_loss(self.model(x), y)


def batches(device: str, *shapes: tuple[int, ...], steps: int = 3) -> Iterator[Any]:
    """Makes the same random batches for any device."""
    generator = torch.Generator().manual_seed(2)
    for _ in range(steps):
        yield [torch.randn(shape, generator=generator).to(device) for shape in shapes]


@program
def train_mlp(device: str) -> Any:
    def layers() -> nn.Module:
        return Loss(nn.Sequential(nn.Linear(12, 40), nn.Tanh(), nn.Linear(40, 3)))

    model = model_of(layers, device)
    return trained(model, *batches(device, (16, 12), (16, 3)))


@program
def train_with_dropout(device: str) -> Any:
    def layers() -> nn.Module:
        return Loss(
            nn.Sequential(
                nn.Linear(12, 40), nn.LayerNorm(40), nn.Dropout(0.2), nn.Linear(40, 3)
            )
        )

    model = model_of(layers, device)
    torch.manual_seed(5)
    return trained(model, *batches(device, (16, 12), (16, 3)))


@program
def train_with_adamw(device: str) -> Any:
    def layers() -> nn.Module:
        return Loss(nn.Sequential(nn.Linear(6, 20), nn.SiLU(), nn.Linear(20, 3)))

    model = model_of(layers, device)
    data = batches(device, (16, 6), (16, 3))
    return trained(model, *data, optimizer=torch.optim.AdamW)


@program
def train_convolutions(device: str) -> Any:
    def layers() -> nn.Module:
        return Loss(
            nn.Sequential(
                nn.Conv2d(3, 8, 3, padding=1),
                nn.BatchNorm2d(8),
                nn.ReLU(),
                nn.AdaptiveAvgPool2d(1),
                nn.Flatten(),
                nn.Linear(8, 3),
            )
        )

    model = model_of(layers, device)
    return trained(model, *batches(device, (4, 3, 10, 10), (4, 3)))


@program
def train_pools(device: str) -> Any:
    def layers() -> nn.Module:
        return nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(16 * 7 * 7, 10),
        )

    model = model_of(lambda: Loss(layers()), device)
    return trained(model, *batches(device, (32, 1, 28, 28), (32, 10), steps=2))


class Gpt(nn.Module):
    """Two layers of a transformer, with the loss of the next token."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(50, 32)
        self.places = nn.Embedding(16, 32)
        self.layers = nn.ModuleList(Block() for _ in range(2))
        self.norm = nn.LayerNorm(32)
        self.head = nn.Linear(32, 50, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.tokens(tokens) + self.places(places)
        for layer in self.layers:
            x = layer(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


class Block(nn.Module):
    """Attention and a multilayer perceptron."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(32), nn.LayerNorm(32)
        self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)
        self.mlp = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32))
        self.dropout = nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        b, t, c = x.shape
        parts = self.qkv(self.first(x)).view(b, t, 3, 4, c // 4).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(*parts, is_causal=True)
        x = x + self.dropout(self.out(y.transpose(1, 2).reshape(b, t, c)))
        return x + self.dropout(self.mlp(self.second(x)))


@program
def train_gpt(device: str) -> Any:
    model = model_of(Gpt, device)
    torch.manual_seed(5)
    tokens = torch.arange(64).view(4, 16) * 7 % 50
    return trained(model, *[[tokens.to(device)]] * 3)


@program
def generate_with_gpt(device: str) -> Any:
    model = model_of(Gpt, device).eval()
    tokens = (torch.arange(64).view(4, 16) * 7 % 50).to(device)
    with torch.no_grad():
        return torch.compile(model, fullgraph=True)(tokens)


def optimized(make_optimizer: Callable[..., torch.optim.Optimizer], device: str) -> Any:
    """Trains with a compiled optimizer step."""

    def layers() -> nn.Module:
        return nn.Sequential(nn.Linear(6, 20), nn.SiLU(), nn.Linear(20, 3))

    model = model_of(layers, device)
    optimizer = make_optimizer(model.parameters())
    step = torch.compile(optimizer.step)
    for x, y in batches(device, (16, 6), (16, 3), steps=4):
        F.mse_loss(model(x), y).backward()
        step()
        optimizer.zero_grad()
    return list(model.parameters())


@program
def compiled_sgd(device: str) -> Any:
    return optimized(
        lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, foreach=True), device
    )


@program
def compiled_adam(device: str) -> Any:
    return optimized(lambda p: torch.optim.Adam(p, 0.1, foreach=True), device)


@program
def compiled_adamw(device: str) -> Any:
    return optimized(lambda p: torch.optim.AdamW(p, 0.1, foreach=False), device)


@program
def fused_adamw(device: str) -> Any:
    return optimized(lambda p: torch.optim.AdamW(p, 0.1, fused=True), device)


@program
def compiled_autograd(device: str) -> Any:
    def layers() -> nn.Module:
        return Loss(nn.Sequential(nn.Linear(12, 8), nn.Tanh(), nn.Linear(8, 3)))

    model = model_of(layers, device)
    with torch._dynamo.config.patch(compiled_autograd=True):
        for x, y in batches(device, (16, 12), (16, 3)):

            @torch.compile
            def step(x: Tensor, y: Tensor) -> None:
                model(x, y).backward()

            step(x, y)
    return [parameter.grad for parameter in model.parameters()]


@program
def train_with_autocast(device: str) -> Any:
    def layers() -> nn.Module:
        return nn.Sequential(nn.Linear(12, 40), nn.Tanh(), nn.Linear(40, 3))

    model = model_of(layers, device)

    @torch.compile(fullgraph=True)
    def loss_of(x: Tensor, y: Tensor) -> Tensor:
        with torch.autocast(device, dtype=torch.bfloat16):
            return F.mse_loss(model(x).float(), y)

    losses = []
    for x, y in batches(device, (16, 12), (16, 3)):
        losses.append(loss_of(x, y))
        losses[-1].backward()
    return losses, [parameter.grad for parameter in model.parameters()]


@program
def train_with_other_batches(device: str) -> Any:
    def layers() -> nn.Module:
        return Loss(nn.Sequential(nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 3)))

    model = model_of(layers, device)
    each = [next(batches(device, (n, 12), (n, 3), steps=1)) for n in (4, 9, 17)]
    return trained(model, *each)


# ---- comparison ------------------------------------------------------------------


def compare(name: str) -> dict[str, Any]:
    """Runs a program on both devices; returns its report."""
    run = PROGRAMS[name]
    expected = tree_leaves(run("cpu"))
    torch.compiler.reset()
    with openreg.operator_paths() as paths:
        found = tree_leaves(run(openreg_aten.device_type()))
        torch.accelerator.synchronize()
    torch.compiler.reset()
    assert len(expected) == len(found)
    pairs = [(a, b.cpu()) for a, b in zip(expected, found, strict=True)]
    assert all(a.dtype == b.dtype and a.stride() == b.stride() for a, b in pairs)
    return {
        "name": name,
        "equal": all(torch.equal(a, b) for a, b in pairs),
        "close": all(torch.allclose(a, b, 1e-4, 1e-5) for a, b in pairs),
        "kernels": sorted(
            {path for call, path in paths.calls if call.startswith("compiled::")}
        ),
    }


def main(names: list[str]) -> None:
    """Compares the programs of these names, or all."""
    for name in names or PROGRAMS:
        try:
            said = compare(name)
        except Exception as error:
            said = {"name": name, "error": f"{type(error).__name__}: {error}"[-2000:]}
        sys.stdout.write(f"{json.dumps(said)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
