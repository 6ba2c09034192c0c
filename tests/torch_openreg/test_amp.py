# SPDX-License-Identifier: BSD-3-Clause
"""torch.openreg.amp: autocast with the rules, and a clear word without them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import torch_openreg

Interpreter = Callable[..., subprocess.CompletedProcess[str]]
Output = Callable[..., str]

WITHOUT_AMP = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name == "openreg_amp":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Blocker())
import torch
"""


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast_runs_matmul_in_the_lower_type(dtype: torch.dtype) -> None:
    x = torch.randn(8, 8, device="openreg")
    with torch.openreg.amp.autocast(dtype):
        assert torch.is_autocast_enabled("openreg")
        y = x @ x
        assert y.softmax(0).dtype is torch.float32
    assert y.dtype is dtype
    assert torch.equal(y.cpu(), x.cpu().to(dtype) @ x.cpu().to(dtype))
    assert not torch.is_autocast_enabled("openreg")


def test_autocast_uses_float16_by_default() -> None:
    x = torch.ones(2, 2, device="openreg")
    with torch.openreg.amp.autocast():
        assert (x @ x).dtype is torch.float16
    with torch.autocast("openreg", enabled=False):
        assert (x @ x).dtype is torch.float32


def test_autocast_warns_about_an_unsupported_type() -> None:
    with pytest.warns(UserWarning, match=r"only supports dtypes of torch\.float16"):
        torch.autocast("openreg", torch.float64)


def test_supported_types_are_half_and_bfloat16() -> None:
    supported = torch.openreg.get_amp_supported_dtype()
    assert supported == [torch.float16, torch.bfloat16]
    assert torch.openreg.is_bf16_supported()


class Square(torch.autograd.Function):
    """Notes the types that it computes in."""

    seen: tuple[torch.dtype, bool]

    @staticmethod
    @torch.openreg.amp.custom_fwd(cast_inputs=torch.float32)
    def forward(ctx: Any, x: Tensor) -> Tensor:
        """Squares the input."""
        ctx.save_for_backward(x)
        Square.seen = (x.dtype, torch.is_autocast_enabled("openreg"))
        return x * x

    @staticmethod
    @torch.openreg.amp.custom_bwd
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        """Gives the derivative."""
        (x,) = ctx.saved_tensors
        return grad * 2 * x


def test_custom_function_casts_inputs_and_leaves_autocast() -> None:
    x = torch.full((3,), 2.0, device="openreg", dtype=torch.float16, requires_grad=True)
    with torch.openreg.amp.autocast():
        Square.apply(x).sum().backward()
    assert Square.seen == (torch.float32, False)
    assert x.grad.tolist() == [4, 4, 4]


def test_grad_scaler_skips_the_step_after_an_overflow() -> None:
    weight = torch.ones(2, device="openreg", requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=1.0)
    scaler = torch.openreg.amp.GradScaler(init_scale=4.0)
    scaler.scale((weight * float("inf")).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert weight.tolist() == [1, 1]
    assert scaler.get_scale() == 2.0
    optimizer.zero_grad()
    scaler.scale((weight * 3).sum()).backward()
    scaler.step(optimizer)
    assert weight.tolist() == [-2, -2]


def test_autocast_without_the_package_names_the_pip_command(
    interpreter: Interpreter,
) -> None:
    result = interpreter(WITHOUT_AMP + 'torch.autocast("openreg")')
    command = f"pip install openreg-amp=={torch_openreg.__version__}"
    assert result.stderr.splitlines()[-1].startswith("RuntimeError: ")
    assert result.stderr.splitlines()[-1].endswith(command)


def test_everything_but_autocast_works_without_the_package(output: Output) -> None:
    source = """
x = torch.ones(4, device="openreg", requires_grad=True)
with torch.autocast("openreg", enabled=False):
    y = torch.utils.checkpoint.checkpoint(torch.sin, x, use_reentrant=False)
y.sum().backward()
print(x.grad.shape, torch.openreg.get_amp_supported_dtype())
"""
    assert output(WITHOUT_AMP + source) == "torch.Size([4]) []"


def test_autocast_left_out_says_so(interpreter: Interpreter) -> None:
    source = 'import torch; torch.autocast("openreg")'
    result = interpreter(source, OPENREG_DISABLE="autocast")
    assert result.stderr.splitlines()[-1].startswith("RuntimeError: ")
    assert "OPENREG_DISABLE names autocast" in result.stderr.splitlines()[-1]
