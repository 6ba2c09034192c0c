# SPDX-License-Identifier: BSD-3-Clause
"""Mixed precision: which dtype operators compute in, and the scaling of gradients."""

import torch
from torch.nn import functional as F

from openreg_conformance.case import Suite

_suite = Suite(__name__)
case, cases = _suite.case, _suite.cases

HALF = torch.bfloat16


@case("autocast")
def products_are_in_the_lower_precision(device):
    """Matrix products and convolutions compute in the dtype of autocast."""
    x = torch.randn(4, 4, device=device)
    image = torch.randn(1, 2, 5, 5, device=device)
    with torch.autocast(device, dtype=HALF):
        assert (x @ x).dtype == HALF
        assert F.linear(x, x).dtype == HALF
        assert F.conv2d(image, torch.ones(3, 2, 3, 3, device=device)).dtype == HALF
        assert torch.baddbmm(x[None], x[None], x[None]).dtype == HALF
    assert (x @ x).dtype == torch.float32, "autocast is still on"


@case("autocast", "accelerator", subject="operators in float32")
def sums_and_losses_are_in_float32(device):
    """Operators that need the range of float32 compute in it, as on CUDA."""
    x = torch.rand(4, 4, device=device, dtype=HALF)
    with torch.autocast(device, dtype=HALF):
        for call in (
            lambda: x.softmax(0),
            lambda: x.log_softmax(0),
            lambda: x.sum(),
            lambda: x.exp(),
            lambda: F.mse_loss(x, x),
            lambda: F.layer_norm(x, (4,)),
            lambda: F.cross_entropy(x, torch.zeros(4, dtype=torch.long, device=device)),
        ):
            assert call().dtype == torch.float32


@case("autocast", subject="operators of two dtypes", users=0.4)
def operators_of_two_dtypes_take_the_wider(device):
    """Cat and other operators promote tensors of two dtypes to the wider dtype."""
    x = torch.rand(2, 2, device=device)
    with torch.autocast(device, dtype=HALF):
        assert torch.cat([x, x.to(HALF)]).dtype == torch.float32
        assert (x + x.to(HALF)).dtype == torch.float32


@case("autocast", subject="the context", users=0.4)
def autocast_nests_and_ends(device):
    """Autocast can be disabled inside, and is_autocast_enabled returns its state."""
    x = torch.randn(4, 4, device=device)
    assert not torch.is_autocast_enabled(device)
    with torch.autocast(device, dtype=HALF):
        assert torch.is_autocast_enabled(device)
        assert torch.get_autocast_dtype(device) == HALF
        with torch.autocast(device, enabled=False):
            assert (x @ x).dtype == torch.float32
        assert (x @ x).dtype == HALF
    assert not torch.is_autocast_enabled(device)


@case("autocast", subject="gradients")
def gradients_have_the_dtype_of_parameters(device):
    """Gradients of a pass under autocast are float32 and approximately correct."""
    torch.manual_seed(0)
    model = torch.nn.Linear(16, 4)
    x = torch.randn(8, 16)
    model(x).square().mean().backward()
    expected = model.weight.grad.clone()
    model.zero_grad()
    model = model.to(device)
    with torch.autocast(device, dtype=HALF):
        loss = model(x.to(device)).float().square().mean()
    loss.backward()
    assert model.weight.grad.dtype == torch.float32
    torch.testing.assert_close(model.weight.grad.cpu(), expected, rtol=0.05, atol=0.01)


@case("autocast", subject="GradScaler", users=0.3)
def gradients_are_scaled(device):
    """GradScaler scales, unscales, steps, and skips steps with infinite gradients."""
    weight = torch.ones(4, device=device, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.5)
    scaler = torch.amp.GradScaler(device, init_scale=8.0)
    scaler.scale((weight * 2).sum()).backward()
    assert weight.grad.tolist() == [16] * 4
    scaler.step(optimizer)
    scaler.update()
    assert weight.tolist() == [0] * 4
    optimizer.zero_grad()
    scaler.scale((weight * float("inf")).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert weight.tolist() == [0] * 4, "a step with infinite gradients was taken"
    assert scaler.get_scale() == 4.0


@case("autocast", "PrivateUse1", subject="supported dtypes", users=0.4)
def module_lists_dtypes_of_autocast(device):
    """The module's get_amp_supported_dtype lists the dtypes of autocast."""
    listed = torch.get_device_module(device).get_amp_supported_dtype()
    assert torch.bfloat16 in listed or torch.float16 in listed, listed
