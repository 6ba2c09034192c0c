# SPDX-License-Identifier: BSD-3-Clause
"""Compares 16-bit floats with float32 in speed, and with float64 in accuracy.

    python benchmarks/half.py                           on the device
    OPENREG_HALF_IN_FLOAT32=0 python benchmarks/half.py with the CPU kernels
    python benchmarks/half.py conv2d lstm --seconds 1

Each program runs forward and backward on one thread. Times are CPU times of all threads
of the process, which change little while the machine has other work. The error is the
largest difference of an output or gradient from the float64 result, divided by the
largest float64 value, on the device and on the CPU.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

DTYPES = (torch.float16, torch.bfloat16)

# A function that returns outputs, and a function that returns its float32 inputs.
Program = tuple[Callable[..., Tensor], Callable[[], list[Tensor]]]


def _lstm(kind: type[nn.RNNBase]) -> Program:
    torch.manual_seed(0)
    layers = kind(64, 64, batch_first=True)
    weights = [weight.detach() for weight in layers.parameters()]

    def run(x: Tensor, state: Tensor, *weights: Tensor) -> Tensor:
        if kind is nn.GRU:
            return torch.gru(x, state, weights, True, 1, 0.0, True, False, True)[0]
        both = (state, state)
        return torch.lstm(x, both, weights, True, 1, 0.0, True, False, True)[0]

    return run, lambda: [torch.randn(16, 16, 64), torch.randn(1, 16, 64), *weights]


def _programs() -> dict[str, Program]:
    def randn(*shapes: tuple[int, ...]) -> Callable[[], list[Tensor]]:
        return lambda: [torch.randn(shape) for shape in shapes]

    def index(x: Tensor) -> Tensor:
        return torch.arange(x.shape[0], device=x.device) * 7 % x.shape[0]

    image = (8, 16, 24, 24)
    return {
        "conv1d": (F.conv1d, randn((8, 32, 256), (32, 32, 3))),
        "conv2d": (F.conv2d, randn(image, (32, 16, 3, 3), (32,))),
        "conv3d": (F.conv3d, randn((2, 8, 12, 12, 12), (8, 8, 3, 3, 3))),
        "depthwise": (
            lambda x, w: F.conv2d(x, w, groups=16),
            randn(image, (16, 1, 3, 3)),
        ),
        "conv_transpose2d": (F.conv_transpose2d, randn(image, (16, 16, 3, 3))),
        "conv_transpose3d": (
            F.conv_transpose3d,
            randn((2, 8, 8, 8, 8), (8, 8, 3, 3, 3)),
        ),
        "linear": (F.linear, randn((256, 256), (256, 256), (256,))),
        "linear, small": (F.linear, randn((32, 256), (256, 256), (256,))),
        "mm": (torch.mm, randn((192, 192), (192, 192))),
        "mv": (torch.mv, randn((768, 768), (768,))),
        "bmm": (torch.bmm, randn((16, 64, 64), (16, 64, 64))),
        "baddbmm": (torch.baddbmm, randn((16, 64, 64), (16, 64, 64), (16, 64, 64))),
        "attention": (
            F.scaled_dot_product_attention,
            randn(*[(4, 4, 128, 32)] * 3),
        ),
        "lstm": _lstm(nn.LSTM),
        "gru": _lstm(nn.GRU),
        "batch_norm": (
            lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
            randn((16, 32, 24, 24), (32,), (32,)),
        ),
        "batch_norm, channels last": (
            lambda x, w, b: F.batch_norm(
                x.contiguous(memory_format=torch.channels_last),
                *(None, None, w, b),
                training=True,
            ),
            randn((16, 32, 24, 24), (32,), (32,)),
        ),
        "batch_norm, evaluation": (
            lambda x, w, b: F.batch_norm(x, w.detach(), b.detach() ** 2, w, b),
            randn((16, 32, 24, 24), (32,), (32,)),
        ),
        "group_norm": (
            lambda x, w, b: F.group_norm(x, 4, w, b),
            randn((16, 32, 24, 24), (32,), (32,)),
        ),
        "layer_norm": (
            lambda x, w, b: F.layer_norm(x, (256,), w, b),
            randn((1024, 256), (256,), (256,)),
        ),
        "softmax": (lambda x: x.softmax(-1), randn((1024, 256))),
        "log_softmax": (lambda x: x.log_softmax(-1), randn((1024, 256))),
        "cross_entropy": (
            lambda x: F.cross_entropy(x, index(x) % x.shape[1]),
            randn((1024, 256)),
        ),
        "binary_cross_entropy": (
            lambda x: F.binary_cross_entropy(x.sigmoid(), torch.ones_like(x)),
            randn((512, 256)),
        ),
        "max_pool2d": (lambda x: F.max_pool2d(x, 2), randn((8, 32, 48, 48))),
        "avg_pool2d": (lambda x: F.avg_pool2d(x, 2), randn((8, 32, 48, 48))),
        "adaptive_avg_pool2d": (
            lambda x: F.adaptive_avg_pool2d(x, 4),
            randn((8, 32, 48, 48)),
        ),
        "interpolate, nearest": (
            lambda x: F.interpolate(x, scale_factor=2),
            randn(image),
        ),
        "interpolate, bilinear": (
            lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
            randn(image),
        ),
        "interpolate, bicubic": (
            lambda x: F.interpolate(x, scale_factor=2, mode="bicubic"),
            randn(image),
        ),
        "interpolate, trilinear": (
            lambda x: F.interpolate(x, scale_factor=2, mode="trilinear"),
            randn((2, 8, 12, 12, 12)),
        ),
        "grid_sample": (
            lambda x, g: F.grid_sample(x, g.tanh(), align_corners=False),
            randn(image, (8, 24, 24, 2)),
        ),
        "index_add": (
            lambda x, y: x.index_add(0, index(x), y),
            randn((512, 256), (512, 256)),
        ),
        "index_add, columns": (
            lambda x, y: x.index_add(1, index(x)[: x.shape[1]] % x.shape[1], y),
            randn((512, 256), (512, 256)),
        ),
        "scatter_add": (
            lambda x, y: x.scatter_add(0, index(x)[:, None].expand_as(x), y),
            randn((512, 256), (512, 256)),
        ),
        "index_select": (
            lambda x: x.index_select(0, index(x)),
            randn((1024, 256)),
        ),
        "embedding": (lambda w: F.embedding(index(w), w), randn((1024, 256))),
        "index_put": (
            lambda x, y: x.index_put((index(x),), y, accumulate=True),
            randn((512, 256), (512, 256)),
        ),
        "cumsum": (lambda x: x.cumsum(0), randn((512, 512))),
        "cumprod": (lambda x: x.cumprod(0), randn((32, 512))),
        "sum": (lambda x: x.sum(0), randn((1024, 512))),
        "mean": (lambda x: x.mean(1), randn((1024, 512))),
        "var": (lambda x: x.var(1), randn((1024, 256))),
        "norm": (lambda x: x.norm(dim=1), randn((1024, 256))),
        "logsumexp": (lambda x: x.logsumexp(1), randn((1024, 256))),
        "sort": (lambda x: x.sort(1)[0], randn((256, 256))),
        "gelu": (F.gelu, randn((1024, 256))),
        "silu": (F.silu, randn((1024, 256))),
        "erfinv": (lambda x: (x.tanh() * 0.9).erfinv(), randn((512, 256))),
        "add": (torch.add, randn((1024, 512), (1024, 512))),
        "mul": (torch.mul, randn((1024, 512), (1024, 512))),
        "matrix_exp": (torch.matrix_exp, randn((8, 16, 16))),
    }


class Run:
    """One program on one device in one dtype."""

    def __init__(self, program: Program, device: str, dtype: torch.dtype) -> None:
        torch.manual_seed(1)
        self._function, make = program
        # All dtypes start from values that the narrowest dtype can represent.
        narrow = [x.bfloat16().to(torch.float16) for x in make()]
        self._inputs = [x.to(device, dtype).requires_grad_() for x in narrow]
        out = self._function(*self._inputs)
        torch.manual_seed(2)
        self._grad = torch.randn(out.shape).bfloat16().to(device, dtype)

    def results(self) -> list[Tensor]:
        """Returns the outputs and gradients of a run, on the CPU in float64."""
        out = self()
        return [x.detach().cpu().double() for x in out]

    def __call__(self) -> list[Tensor]:
        """Runs the program and returns the output and the gradients."""
        out = self._function(*self._inputs)
        if out.grad_fn is None:
            return [out]
        return [out, *torch.autograd.grad(out, self._inputs, self._grad)]


def cpu_seconds(run: Run, device: str, seconds: float) -> float:
    """Returns the shortest CPU time of a run, over all threads."""
    wait = torch.accelerator.synchronize if device != "cpu" else lambda: None
    run()
    wait()
    best, end = float("inf"), time.process_time() + seconds
    while time.process_time() < end:
        begin = time.process_time()
        run()
        wait()
        best = min(best, time.process_time() - begin)
    return best


def error(found: list[Tensor], right: list[Tensor]) -> float:
    """Returns the largest error, relative to the largest value of each tensor."""
    return max(
        ((x - y).abs().max() / y.abs().max().clamp_min(1e-30)).item()
        for x, y in zip(found, right, strict=True)
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints a row for each program."""
    programs = _programs()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM")
    parser.add_argument("--device", default="openreg", help="(default: %(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=0.2, help="CPU time per program"
    )
    options = parser.parse_args(arguments)
    for name in options.programs:
        if name not in programs:
            parser.error(f"PROGRAM is {name!r}; accepted: {', '.join(programs)}")
    torch.set_num_threads(1)
    print(f"{'':<26}{'float32':>9}", end="")
    for dtype in DTYPES:
        print(f"{str(dtype).removeprefix('torch.'):>10}{'error':>10}", end="")
        print(f"{'on CPU':>10}", end="")
    print()
    for name in options.programs or programs:
        program = programs[name]
        plain = Run(program, options.device, torch.float32)
        single = cpu_seconds(plain, options.device, options.seconds)
        right = Run(program, "cpu", torch.float64).results()
        print(f"{name:<26}{1e6 * single:>7.0f}us", end="")
        for dtype in DTYPES:
            run = Run(program, options.device, dtype)
            ratio = cpu_seconds(run, options.device, options.seconds) / single
            cpu = error(Run(program, "cpu", dtype).results(), right)
            print(f"{ratio:>10.2f}{error(run.results(), right):>10.1e}", end="")
            print(f"{cpu:>10.1e}", end="", flush=True)
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
