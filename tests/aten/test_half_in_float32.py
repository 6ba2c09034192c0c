# SPDX-License-Identifier: BSD-3-Clause
"""Operators of 16-bit floats that compute in float32, and their errors."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from subprocess import CompletedProcess
from typing import Any

import pytest

from support.programs import ROOT

Program = Callable[..., "CompletedProcess[str]"]

SOURCE = ROOT / "packages/openreg-aten/csrc/facts/operators.cpp"

# Operators of ATen by the program that calls them; forward and backward are run.
CALLS = {
    "convolution_overrideable": "F.conv2d(a[:2, :3], w, b, stride=2, padding=1)",
    "_adaptive_avg_pool2d": "F.adaptive_avg_pool2d(a, (3, 2))",
    "_addmm_activation": "torch._addmm_activation(b.detach(), m.detach(), "
    "m.detach().t()[:, :5])",
    "_native_batch_norm_legit": "torch._native_batch_norm_legit("
    "a, c, c, c.detach(), c.detach() ** 2, True, 0.0, 1e-5)[0]",
    "_scaled_dot_product_flash_attention_for_cpu": "F.scaled_dot_product_attention("
    "a, a, a)",
    "addbmm": "torch.addbmm(a[0, 0], a[0], a[1].mT)",
    "addmm": "torch.addmm(b[:5], m, m.t()[:, :5])",
    "baddbmm": "torch.baddbmm(a[0], a[0], a[1].mT)",
    "bmm": "a[0] @ a[1].mT",
    "mm": "m @ m.t()",
    "binary_cross_entropy": "F.binary_cross_entropy(m.sigmoid(), m.detach().sigmoid())",
    "erfinv": "(m.tanh() * 0.9).erfinv()",
    "floor_divide": "m.detach().floor_divide(m.detach().flip(0))",
    "grid_sampler_2d": "F.grid_sample(a, a[:, :2].permute(0, 2, 3, 1).tanh(), "
    "align_corners=False)",
    "linalg_matrix_exp": "torch.matrix_exp(0.1 * a[0])",
    "native_batch_norm": "F.batch_norm(a, None, None, c, c, training=True)",
    "unfold_backward": "a.unfold(2, 3, 2)",
    "lstm": "torch.lstm(s, (h, h), (wi[:28], wh[:28]), False, 1, 0.0, True, False, "
    "True)[0]",
    "gru": "torch.gru(s, h, (wi[:21], wh[:21]), False, 1, 0.0, True, False, True)[0]",
    "rnn_tanh": "torch.rnn_tanh(s, h, (wi[:7], wh[:7]), False, 1, 0.0, True, False, "
    "True)[0]",
    "rnn_relu": "torch.rnn_relu(s, h, (wi[:7], wh[:7]), False, 1, 0.0, True, False, "
    "True)[0]",
}
# Gradients, and other names of the operators above.
COVERED = {
    "_adaptive_avg_pool2d_backward",
    "_batch_norm_with_update",
    "_scaled_dot_product_flash_attention_for_cpu_backward",
    "batch_norm_backward",
    "binary_cross_entropy_backward",
    "convolution",
    "convolution_backward",
    "convolution_backward_overrideable",
    "grid_sampler_2d_backward",
    "native_batch_norm_backward",
}

PROGRAM = """
import json, sys, warnings
import torch, torch.nn.functional as F, openreg_aten
warnings.simplefilter("ignore")
openreg_aten._C.init()
calls = json.loads({calls!r})
torch.manual_seed(5)
shapes = dict(
    a=(2, 4, 6, 6), w=(5, 3, 3, 3), b=(5,), c=(4,), m=(33, 17), s=(3, 5, 6),
    h=(1, 3, 7), wi=(28, 6), wh=(28, 7),
)
values = {{k: torch.randn(v).bfloat16().half() for k, v in shapes.items()}}

def run(call, device, dtype):
    given = {{
        k: v.to(device, dtype).requires_grad_(dtype.is_floating_point)
        for k, v in values.items()
    }}
    out = eval(call, dict(globals(), **given))
    grads = []
    if out.requires_grad:
        inputs = list(given.values())
        seed = torch.linspace(-1, 1, out.numel()).view(out.shape).bfloat16()
        grads = torch.autograd.grad(
            out, inputs, seed.to(device, out.dtype), allow_unused=True
        )
    return [out.detach(), *[g for g in grads if g is not None]]

def error(found, right):
    return max(
        ((x.double() - y).abs().max() / y.abs().max().clamp_min(1e-9)).item()
        for x, y in zip(found, right, strict=True)
    )

for name, call in calls.items():
    right = run(call, "cpu", torch.float64)
    for dtype in (torch.float16, torch.bfloat16):
        ours = run(call, "privateuseone", dtype)
        cpu = run(call, "cpu", dtype)
        looks = [[str(x.dtype), list(x.shape), list(x.stride())] for x in ours]
        expected = [[str(x.dtype), list(x.shape), list(x.stride())] for x in cpu]
        ours = [x.cpu() for x in ours]
        print(json.dumps([
            name, str(dtype), error(ours, right), error(cpu, right), looks == expected
        ]))
"""


def run(run_python: Program, calls: dict[str, str], **environment: str) -> list[Any]:
    """Runs calls with the default, and returns the lines that are printed."""
    environment.setdefault("OPENREG_HALF_IN_FLOAT32", "1")
    result = run_python(PROGRAM.format(calls=json.dumps(calls)), **environment)
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.parametrize("inline_bytes", ["65536", "0"], ids=["inline", "enqueued"])
def test_results_and_gradients_are_as_exact_as_those_of_the_cpu(
    inline_bytes: str, run_python: Program
) -> None:
    lines = run(run_python, CALLS, OPENREG_INLINE_BYTES=inline_bytes)
    assert len(lines) == 2 * len(CALLS)
    for name, dtype, ours, cpu, looks in lines:
        assert looks, f"{name} in {dtype} has another dtype, shape or strides"
        # Each may round a number that the gradient depends on in a different direction.
        half_a_place = 2.0**-11 if dtype == "torch.float16" else 2.0**-8
        assert ours <= cpu + half_a_place, (name, dtype)


def test_setting_gives_the_bits_of_the_cpu(run_python: Program) -> None:
    lines = run(run_python, {"mm": CALLS["mm"]}, OPENREG_HALF_IN_FLOAT32="0")
    for name, dtype, ours, cpu, looks in lines:
        assert (ours, looks) == (cpu, True), (name, dtype)


def test_every_operator_of_the_table_is_tested() -> None:
    rows = re.findall(
        r'\{"(?:aten|openreg)::(\w+)",[^,}]+,[^,}]+,\s*kHalf', SOURCE.read_text()
    )
    assert set(rows) == set(CALLS) | COVERED


@pytest.mark.parametrize(
    "call",
    [
        "torch.mm(x, y)",
        "torch.mm(x, y.long())",
        "torch.mm(x, x, out=y.long())",
        "torch.nn.functional.batch_norm(x, y[0], y[1], x[0], x[1])",
        "torch.nn.functional.batch_norm(x, x[0], x[1], y[0], y[1])",
        "torch.erfinv(x.view(-1)[:-1], out=x.view(-1)[1:])",
        "torch.bmm(x[None], y[None])",
        "torch.nn.functional.conv1d(x[None], y[None].mT)",
    ],
)
def test_operators_that_the_cpu_refuses_are_refused(
    call: str, run_python: Program
) -> None:
    result = run_python(
        f"""
        import torch, openreg_aten
        openreg_aten._C.init()
        x = torch.ones(2, 2, dtype=torch.float16)
        y = torch.ones(2, 2)
        texts = []
        for device in ("cpu", "privateuseone"):
            try:
                (lambda x, y: {call})(x.to(device), y.to(device))
            except RuntimeError as error:
                texts.append(str(error).splitlines()[0])
        print(len(texts), texts[0] == texts[-1])
        """,
        OPENREG_HALF_IN_FLOAT32="1",
    )
    assert result.stdout == "2 True\n", result.stdout + result.stderr


def test_setting_that_is_neither_0_nor_1_is_refused(run_python: Program) -> None:
    result = run_python(
        "import openreg_aten; openreg_aten._C.init()", OPENREG_HALF_IN_FLOAT32="yes"
    )
    assert result.returncode != 0
    assert "OPENREG_HALF_IN_FLOAT32" in result.stderr
