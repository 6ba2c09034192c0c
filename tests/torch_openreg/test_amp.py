# SPDX-License-Identifier: BSD-3-Clause
"""torch.openreg.amp: autocast with the rules, and a clear error without them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import torch_openreg
from support.programs import Program

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
    """Records its dtypes."""

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


OPTIMIZERS: list[tuple[str, dict[str, bool]]] = [
    (name, {implementation: True} if implementation else {})
    for name, implementations in {
        "SGD": ["", "foreach", "fused"],
        "Adam": ["", "foreach", "fused"],
        "AdamW": ["", "foreach", "fused"],
        "Adagrad": ["", "foreach", "fused"],
        "RMSprop": ["", "foreach"],
    }.items()
    for implementation in implementations
]


@pytest.mark.parametrize("bad", [float("inf"), float("-inf"), float("nan")])
@pytest.mark.parametrize(("name", "options"), OPTIMIZERS)
def test_scaler_skips_bad_steps_and_takes_the_others_as_on_the_cpu(
    name: str, options: dict[str, bool], bad: float
) -> None:
    torch.manual_seed(0)
    data = torch.randn(5, 8, 4)
    data[2, 3, 1] = bad

    def train(device: str) -> tuple[list[Tensor], list[float]]:
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Linear(6, 2))
        model.to(device)
        optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.1, **options)
        scaler = torch.amp.GradScaler(device, init_scale=16.0, growth_interval=2)
        scales, before = [], [p.detach().clone() for p in model.parameters()]
        for step, batch in enumerate(data):
            optimizer.zero_grad()
            scaler.scale(model(batch.to(device)).square().mean()).backward()
            scaler.step(optimizer)
            scaler.update()
            scales.append(scaler.get_scale())
            after = [p.detach().clone() for p in model.parameters()]
            assert all(map(torch.equal, before, after)) is (step == 2)
            before = after
        return [p.detach().cpu() for p in model.parameters()], scales

    ours, our_scales = train("openreg")
    expected, scales = train("cpu")
    assert our_scales == scales == [16, 32, 16, 16, 32]
    for a, b in zip(ours, expected, strict=True):
        assert torch.isfinite(a).all()
        torch.testing.assert_close(a, b)


def test_scaler_unscales_before_gradients_are_clipped() -> None:
    weight = torch.ones(4, device="openreg", requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=1.0)
    scaler = torch.amp.GradScaler("openreg", init_scale=1024.0)
    scaler.scale((weight * 3).sum()).backward()
    assert weight.grad.tolist() == [3072] * 4
    scaler.unscale_(optimizer)
    norm = torch.nn.utils.clip_grad_norm_([weight], 3.0)
    assert norm.item() == 6.0
    scaler.step(optimizer)
    scaler.update()
    torch.testing.assert_close(weight.detach().cpu(), torch.full((4,), -0.5))
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.unscale_(optimizer)


def test_scaler_is_saved_and_restored() -> None:
    scaler = torch.amp.GradScaler("openreg", init_scale=4.0, growth_interval=1)
    weight = torch.ones(1, device="openreg", requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.0)
    scaler.scale(weight.sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    other = torch.amp.GradScaler("openreg")
    other.load_state_dict(scaler.state_dict())
    assert other.get_scale() == scaler.get_scale() == 8.0


def test_scaler_serves_parameters_on_two_devices() -> None:
    weights = [torch.ones(2, device=f"openreg:{i}", requires_grad=True) for i in (0, 1)]
    optimizer = torch.optim.SGD(weights, lr=1.0)
    scaler = torch.amp.GradScaler("openreg", init_scale=8.0)
    for factor, expected in ((float("inf"), 1.0), (2.0, -1.0)):
        optimizer.zero_grad()
        loss = weights[0].sum() * 2 + (weights[1] * factor).sum().to("openreg:0")
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        assert [w.tolist() for w in weights] == [[expected] * 2] * 2


def test_cast_weights_are_kept_to_the_end_of_the_outermost_region_only() -> None:
    weight = torch.ones(3, 3, device="openreg", requires_grad=True)
    with torch.autocast("openreg"):
        with torch.autocast("openreg"):
            first = (weight @ weight).grad_fn.next_functions[0][0]
        second = (weight @ weight).grad_fn.next_functions[0][0]
    with torch.autocast("openreg"):
        third = (weight @ weight).grad_fn.next_functions[0][0]
    assert first is second
    assert third is not second


def test_cast_weights_are_not_kept_when_the_cache_is_off() -> None:
    weight = torch.ones(3, 3, device="openreg", requires_grad=True)
    with torch.autocast("openreg", cache_enabled=False):
        casts = [(weight @ weight).grad_fn.next_functions[0][0] for _ in range(2)]
    assert casts[0] is not casts[1]


def test_update_of_a_weight_is_seen_by_the_next_region() -> None:
    weight = torch.ones(2, 2, device="openreg", requires_grad=True)
    x = torch.eye(2, device="openreg")
    for expected in (1.0, 3.0):
        with torch.autocast("openreg"):
            assert (x @ weight).tolist() == [[expected] * 2] * 2
        with torch.no_grad():
            weight.add_(2)


def test_disabled_region_inside_an_enabled_one_computes_in_full() -> None:
    x = torch.randn(4, 4, device="openreg")
    with torch.autocast("openreg", torch.bfloat16):
        low = x @ x
        with torch.autocast("openreg", enabled=False):
            assert torch.equal(x @ x, (x.cpu() @ x.cpu()).openreg())
            with torch.autocast("openreg", torch.float16):
                assert (x @ x).dtype is torch.float16
            assert (x @ low.float()).dtype is torch.float32
        assert (x @ x).dtype is torch.bfloat16


def test_autocast_decorates_functions() -> None:
    @torch.autocast("openreg", torch.bfloat16)
    def product(x: Tensor) -> Tensor:
        return x @ x

    x = torch.ones(2, 2, device="openreg")
    assert product(x).dtype is torch.bfloat16
    assert (x @ x).dtype is torch.float32


def test_regions_of_cpu_and_device_do_not_meet() -> None:
    here, there = torch.ones(2, 2), torch.ones(2, 2, device="openreg")
    with torch.autocast("cpu", torch.bfloat16), torch.autocast("openreg"):
        assert (here @ here).dtype is torch.bfloat16
        assert (there @ there).dtype is torch.float16


class Scale(torch.autograd.Function):
    """Records whether autocast is on, in both directions, without casts."""

    seen: list[tuple[bool, torch.dtype]]

    @staticmethod
    @torch.amp.custom_fwd(device_type="openreg")
    def forward(ctx: Any, x: Tensor) -> Tensor:
        """Multiplies the input with itself."""
        ctx.save_for_backward(x)
        y = x @ x
        Scale.seen = [(torch.is_autocast_enabled("openreg"), y.dtype)]
        return y

    @staticmethod
    @torch.amp.custom_bwd(device_type="openreg")
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        """Gives the derivative."""
        (x,) = ctx.saved_tensors
        y = x @ x
        Scale.seen.append((torch.is_autocast_enabled("openreg"), y.dtype))
        return grad.to(x.dtype)


@pytest.mark.parametrize("enabled", [False, True])
def test_custom_function_goes_backward_as_it_went_forward(enabled: bool) -> None:
    x = torch.ones(2, 2, device="openreg", requires_grad=True)
    with torch.autocast("openreg", torch.bfloat16, enabled=enabled):
        y = Scale.apply(x)
    with torch.autocast("openreg", torch.bfloat16, enabled=not enabled):
        y.sum().backward()
    dtype = torch.bfloat16 if enabled else torch.float32
    assert Scale.seen == [(enabled, dtype)] * 2


def test_autocast_without_the_package_names_the_pip_command(
    fresh_interpreter: Program,
) -> None:
    result = fresh_interpreter(WITHOUT_AMP + 'torch.autocast("openreg")')
    command = f"pip install openreg-amp=={torch_openreg.__version__}"
    assert result.stderr.splitlines()[-1].startswith("RuntimeError: ")
    assert result.stderr.splitlines()[-1].endswith(command)


def test_everything_but_autocast_works_without_the_package(
    fresh_interpreter: Program,
) -> None:
    source = """
x = torch.ones(4, device="openreg", requires_grad=True)
with torch.autocast("openreg", enabled=False):
    y = torch.utils.checkpoint.checkpoint(torch.sin, x, use_reentrant=False)
y.sum().backward()
print(x.grad.shape, torch.openreg.get_amp_supported_dtype())
"""
    result = fresh_interpreter(WITHOUT_AMP + source)
    assert result.stdout == "torch.Size([4]) []\n", result.stderr


def test_disabled_autocast_reports_it(interpreter: Program) -> None:
    source = 'import torch; torch.autocast("openreg")'
    result = interpreter(source, OPENREG_DISABLE="autocast")
    assert result.stderr.splitlines()[-1].startswith("RuntimeError: ")
    assert "OPENREG_DISABLE names autocast" in result.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "enter",
    [
        lambda: torch.autocast("cuda"),
        lambda: torch.autocast("cuda", dtype=torch.bfloat16, cache_enabled=False),
        lambda: torch.autocast("cuda")(lambda: None),
        lambda: torch.amp.GradScaler("cuda"),
        lambda: torch.amp.GradScaler(),
    ],
)
def test_pytorch_warns_of_mixed_precision_for_cuda_without_it(
    enter: Callable[[], object],
) -> None:
    with pytest.warns(UserWarning, match="CUDA is not available"):
        enter()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kind", [torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN])
def test_recurrent_layers_train_in_the_lower_type(
    kind: type[torch.nn.RNNBase], dtype: torch.dtype
) -> None:
    torch.manual_seed(0)
    module, x = kind(5, 6, num_layers=2, bidirectional=True), torch.randn(7, 3, 5)
    expected, _ = module(x)
    expected.sum().backward()
    wanted = [parameter.grad for parameter in module.parameters()]
    module.zero_grad()
    module.to("openreg")
    with torch.openreg.amp.autocast(dtype):
        output, _ = module(x.to("openreg"))
    assert output.dtype is dtype
    output.float().sum().backward()
    close = {"rtol": 0.1, "atol": 0.1}
    torch.testing.assert_close(output.float().cpu(), expected, **close)
    for parameter, gradient in zip(module.parameters(), wanted, strict=True):
        assert parameter.grad.dtype is torch.float32
        torch.testing.assert_close(parameter.grad.cpu(), gradient, rtol=0.1, atol=0.5)
