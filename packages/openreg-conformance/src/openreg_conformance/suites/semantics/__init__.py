# SPDX-License-Identifier: BSD-3-Clause
"""Autograd, versions, hooks, views and modules, as on the CPU.

The cases of this file are in every level; the programs of the other files, which
observe all that they make, begin with the level ``sample``.
"""

import importlib

import torch
from torch import nn
from torch.nn import functional as F

from openreg_conformance.case import Suite

_TOPICS = (
    "autograd",
    "checkpoint",
    "custom_functions",
    "forward_mode",
    "gradient_scaling",
    "hooks",
    "module_moves",
    "optimizers",
    "parameter_data",
    "python_objects",
    "random",
    "serialization",
    "state_dict",
    "subclasses",
    "threads",
    "versions",
    "views",
)
_suite = Suite(__name__)
case = _suite.case


def cases(level):
    yield from _suite.cases(level)
    for topic in _TOPICS:
        module = importlib.import_module(f"{__name__}.{topic}")
        yield from module.cases(level)


def refusal(call, words):
    try:
        call()
    except RuntimeError as error:
        assert words in str(error), str(error)
        return
    raise AssertionError(f"nothing was raised; expected: {words}")


@case("gradients", subject="backward")
def gradients_of_a_chain(device):
    """Gradients of a chain of operators are the same as on the CPU."""
    found = []
    for where in ("cpu", device):
        x = torch.linspace(-1, 1, 12).view(3, 4).to(where).requires_grad_()
        y = (x.t() @ x).tanh().sum(0).exp() * x[0]
        y.prod().backward()
        found.append(x.grad.cpu())
    torch.testing.assert_close(found[1], found[0])


@case("semantics", subject="accumulated gradients")
def gradients_are_accumulated(device):
    """backward() adds to grad, and grad is on the device."""
    x = torch.ones(3, device=device, requires_grad=True)
    for _ in range(3):
        (x * 2).sum().backward()
    assert x.grad.device == x.device and x.grad.tolist() == [6] * 3


@case("semantics", subject="gradients of gradients", users=0.2)
def gradients_have_gradients(device):
    """create_graph=True gives gradients that have gradients."""
    x = torch.tensor(3.0, device=device, requires_grad=True)
    (first,) = torch.autograd.grad(x**3, x, create_graph=True)
    (second,) = torch.autograd.grad(first, x)
    assert (first.item(), second.item()) == (27, 18)


@case("versions", subject="in-place writes")
def writes_raise_the_version(device):
    """Every way to write to a tensor increases its version once."""
    x = torch.arange(6.0, device=device).view(2, 3)
    ways = (
        lambda: x.add_(1),
        lambda: x.mul_(2),
        lambda: x.copy_(torch.ones(2, 3)),
        lambda: x.zero_(),
        lambda: x.fill_(3),
        lambda: x.__setitem__(0, 5.0),
        lambda: x.clamp_(0, 4),
        lambda: x[1].sub_(1),
        lambda: x.t().relu_(),
        lambda: torch.add(x, 1, out=x),
    )
    for i, way in enumerate(ways):
        before = x._version
        way()
        assert x._version == before + 1, f"write {i}: {before} to {x._version}"
    before = x._version
    x + 1, x.sum(), x.view(6), x.clone(), x.cpu()
    assert x._version == before, "reading raised the version"


@case("versions", subject="writes that backward notices")
def writes_to_saved_tensors_are_noticed(device):
    """backward() raises if a required tensor was modified."""
    x = torch.ones(3, device=device, requires_grad=True)
    y = x.exp()
    y.add_(1)
    refusal(lambda: y.sum().backward(), "modified by an inplace operation")
    leaf = torch.ones(3, device=device, requires_grad=True)
    refusal(lambda: leaf.add_(1), "leaf Variable that requires grad")


@case("view", subject="views and autograd", users=0.5)
def writes_to_views_reach_gradients(device):
    """A write to a view changes its base and the base's graph."""
    x = torch.ones(4, device=device, requires_grad=True)
    y = x * 1
    view = y[:2]
    assert view._is_view() and view._base is y
    view.mul_(5)
    y.sum().backward()
    assert x.grad.tolist() == [5, 5, 1, 1]


@case("semantics", subject="modes", users=0.7)
def modes_of_autograd(device):
    """no_grad, inference_mode and detach stop autograd, and nothing else."""
    x = torch.ones(2, device=device, requires_grad=True)
    with torch.no_grad():
        assert not (x * 2).requires_grad
    with torch.inference_mode():
        assert (x * 2).is_inference()
    assert not x.detach().requires_grad
    assert x.detach().data_ptr() == x.data_ptr()
    assert (x * 2).requires_grad


@case("semantics", subject="hooks", users=0.3)
def hooks_are_called(device):
    """Hooks of tensors and modules are called in order with device tensors."""
    x = torch.ones(2, device=device, requires_grad=True)
    seen = []
    y = x * 3
    y.register_hook(lambda grad: seen.append(grad.device.type) or grad * 2)
    y.sum().backward()
    assert seen == [device] and x.grad.tolist() == [6, 6]
    layer = nn.Linear(2, 2).to(device)
    layer.register_forward_hook(lambda m, i, o: seen.append(o.device.type))
    layer(x)
    assert seen == [device, device]


@case("semantics", subject="torch.autograd.Function", users=0.3)
def functions_in_python(device):
    """A Python Function runs forward and backward on the device."""

    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * 3 * x**2

    x = torch.tensor([2.0, 3.0], device=device, requires_grad=True)
    Cube.apply(x).sum().backward()
    assert x.grad.tolist() == [12, 27]


@case("semantics", subject="moved modules", users=0.8)
def modules_are_moved(device):
    """to() moves parameters, buffers and gradients, and keeps the parameters."""
    module = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    module(torch.rand(3, 2)).sum().backward()
    before = list(module.parameters())
    values = [each.detach().clone() for each in before]
    module.to(device)
    after = list(module.parameters())
    assert all(one is other for one, other in zip(before, after))
    for parameter, value in zip(after, values):
        assert parameter.device.type == device and parameter.grad.device.type == device
        assert parameter.is_leaf and parameter.detach().cpu().equal(value)
    assert module[1].running_mean.device.type == device
    module.to("cpu")
    assert all(each.device.type == "cpu" for each in module.parameters())


@case("semantics", subject="checkpoints", users=0.3)
def checkpoints_compute_again(device):
    """torch.utils.checkpoint recomputes the same values, with the same dropout."""
    from torch.utils.checkpoint import checkpoint

    x = torch.ones(64, device=device, requires_grad=True)
    y = checkpoint(nn.functional.dropout, x, use_reentrant=False)
    y.sum().backward()
    assert (x.grad != 0).equal(y.detach() != 0)


@case("semantics", subject="torch.func", users=0.1)
def transforms_of_functions(device):
    """torch.func's grad, vmap and jvp work on the device."""
    x = torch.arange(3.0, device=device)
    assert torch.func.grad(lambda t: (t**2).sum())(x).tolist() == [0, 2, 4]
    assert torch.func.vmap(lambda t: t * 2)(x).tolist() == [0, 2, 4]
    value, tangent = torch.func.jvp(torch.square, (x,), (torch.ones_like(x),))
    assert (value.tolist(), tangent.tolist()) == ([0, 1, 4], [0, 2, 4])


@case("semantics", subject="subclasses", users=0.3)
def subclasses_and_parameters(device):
    """Parameters and subclasses of Tensor keep their class on the device."""

    class Mine(torch.Tensor):
        pass

    x = torch.ones(2, device=device).as_subclass(Mine)
    assert type(x + 1) is Mine and (x + 1).device.type == device
    parameter = nn.Parameter(torch.ones(2, device=device))
    assert isinstance(parameter, nn.Parameter) and parameter.requires_grad


@case("operators", subject="numbers and promotion", users=0.6)
def numbers_are_promoted(device):
    """Operators with numbers, and of two dtypes, give the CPU's dtypes."""
    calls = (
        lambda d: torch.ones(2, dtype=torch.int32, device=d) + 1.5,
        lambda d: torch.ones(2, dtype=torch.float16, device=d) * 2,
        lambda d: torch.ones(2, dtype=torch.bool, device=d).sum(),
        lambda d: (
            torch.ones(2, device=d) + torch.ones(2, dtype=torch.float64, device=d)
        ),
        lambda d: torch.ones(2, device=d) * torch.tensor(2.0, dtype=torch.float64),
        lambda d: torch.tensor(3, device=d) / torch.tensor(2, device=d),
        lambda d: torch.ones(2, device=d).argmax(),
        lambda d: torch.ones(2, device=d) > 0,
        lambda d: torch.ones(3, dtype=torch.int64, device=d).float().mean(),
        lambda d: torch.ones(2, dtype=torch.uint8, device=d) - 2,
    )
    for i, call in enumerate(calls):
        mine, expected = call(device), call("cpu")
        assert mine.dtype == expected.dtype, f"{i}: {mine.dtype} not {expected.dtype}"
        assert mine.cpu().equal(expected), f"{i}: {mine.cpu()} not {expected}"


@case("modules", subject="a training loop")
def network_learns(device):
    """A small network trains as on the CPU: losses are equal within rounding."""
    found = []
    for where in ("cpu", device):
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(36, 5),
        )
        x, y = torch.randn(16, 1, 6, 6), torch.arange(16) % 5
        model, x, y = model.to(where), x.to(where), y.to(where)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        losses = []
        for _ in range(5):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        found.append(torch.tensor(losses))
    assert found[0][-1] < found[0][0]
    torch.testing.assert_close(found[1], found[0], rtol=1e-3, atol=1e-4)


FUNCTIONS = {
    "polynomial": lambda x: x**3 - 2 * x * x.t(),
    "perceptron": lambda x: F.linear(torch.tanh(x @ x), x, x[0]).sigmoid(),
    "convolution": lambda x: F.conv2d(x[None, None], x[:3, :3][None, None]),
    "norm": lambda x: F.layer_norm(x, (4,), x[0], x[1]),
    # Without a batch, whose kernel has no forward derivative since torch 2.14.
    "attention": lambda x: F.scaled_dot_product_attention(x, x, x.flip(0)),
    "loss": lambda x: F.cross_entropy(x, torch.arange(4, device=x.device)),
    "solution": lambda x: torch.linalg.solve(x @ x.t() + 5 * torch.eye(4).to(x), x),
    "constant": lambda x: torch.ones_like(x).sum(),
    "dot": lambda x: torch.dot(x[0], x[1]) * x,
    "indices": lambda x: x[torch.tensor([2, 0]).to(x.device)].cumsum(0).prod(),
}
TRANSFORMS = {
    "jvp": lambda f, x: torch.func.jvp(f, (x,), (x.cos(),)),
    "jacfwd": lambda f, x: torch.func.jacfwd(f)(x),
    "forward_over_forward": lambda f, x: torch.func.jacfwd(
        lambda y: torch.func.jvp(f, (y,), (torch.ones_like(y),))[1]
    )(x),
    "hessian": lambda f, x: torch.func.hessian(lambda y: f(y).sum())(x),
    "linearize": lambda f, x: torch.func.linearize(f, x)[1](x.sin()),
}


@case(
    "forward_ad",
    subject="torch.func",
    level="sample",
    users=0.1,
    each=[(transform, function) for transform in TRANSFORMS for function in FUNCTIONS],
)
def derivatives_of_functions(device, transform, function):
    """torch.func's forward derivatives are the same as on the CPU."""
    x = torch.randn(4, 4, generator=torch.Generator().manual_seed(0))
    mine, expected = (
        TRANSFORMS[transform](FUNCTIONS[function], x.to(where))
        for where in (device, "cpu")
    )
    return mine, expected
