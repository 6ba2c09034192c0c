# SPDX-License-Identifier: BSD-3-Clause
"""Subclasses of Tensor, and modes: what they intercept, and how often."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map, tree_map_only

from openreg_conformance.checks.observing import Programs, refusal

_programs = Programs(__name__)
program, each, cases = _programs.program, _programs.each, _programs.cases


class Function(Tensor):
    """Notes the functions that are called on it."""

    calls: list[str] = []  # noqa: RUF012

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append(getattr(func, "__name__", str(func)))
        return super().__torch_function__(func, types, args, kwargs or {})


class Wrapper(Tensor):
    """Wraps a tensor and notes the operators that reach it, below autograd."""

    calls: list[str] = []  # noqa: RUF012
    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor):
        made = Tensor._make_wrapper_subclass(
            cls,
            inner.shape,
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=inner.device,
            requires_grad=inner.requires_grad,
        )
        made.inner = inner.detach()
        return made

    def __tensor_flatten__(self):
        return ["inner"], None

    @staticmethod
    def __tensor_unflatten__(inner, metadata, size, stride):
        return Wrapper(inner["inner"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        cls.calls.append(str(func))

        def unwrap(each: Wrapper) -> Tensor:
            return each.inner

        args, kwargs = tree_map_only(Wrapper, unwrap, (args, kwargs or {}))
        result = func(*args, **kwargs)
        return tree_map_only(Tensor, Wrapper, result)


class NoteOperators(TorchDispatchMode):
    """Notes every operator of a region."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls.append(str(func))
        return func(*args, **(kwargs or {}))


def numbers(device: str) -> Tensor:
    return torch.arange(4.0, device=device)


@program
def torch_function_sees_methods_and_functions(device):
    Function.calls.clear()
    x = numbers(device).as_subclass(Function)
    y = torch.add(x, 1).mul_(2)
    z = y[1:].sum()
    plain = nn.functional.relu(x)
    return list(Function.calls), y, z, plain, type(x + numbers(device)).__name__


@program
def torch_function_may_be_disabled(device):
    Function.calls.clear()
    x = numbers(device).as_subclass(Function)
    with torch._C.DisableTorchFunctionSubclass():
        y = x + 1
    return list(Function.calls), type(y).__name__, y


@program
def subclass_goes_through_autograd(device):
    x = numbers(device).as_subclass(Function).requires_grad_()
    (x * x).sum().backward()
    return x.grad, type(x.grad).__name__, x.is_leaf


@program
def parameter_subclass_moves_with_its_module(device):
    class Special(nn.Parameter):
        pass

    module = nn.Linear(2, 2, bias=False)
    module.weight = Special(module.weight.detach())
    weight = module.weight
    module.to(device)
    module(torch.ones(1, 2, device=device)).sum().backward()
    return weight is module.weight, module.weight, module.weight.grad


@program
def parameter_may_hold_a_subclass(device):
    p = nn.Parameter(numbers(device).as_subclass(Function))
    return type(p).__name__, isinstance(p, nn.Parameter), p.requires_grad, p.is_leaf


@program
def wrapper_sees_the_operators_below_autograd(device):
    Wrapper.calls.clear()
    x = Wrapper(numbers(device)).requires_grad_()
    y = (x.view(2, 2) @ x.view(2, 2)).relu().sum()
    y.backward()
    return list(Wrapper.calls), y.inner, x.grad.inner, type(x.grad).__name__


@program
def wrapper_shows_the_metadata_of_its_device(device):
    x = Wrapper(numbers(device).view(2, 2).mT)
    return x.device, x.dtype, tuple(x.shape), x.stride(), x.is_contiguous(), x.layout


@program
def wrapper_decomposes_composite_operators(device):
    Wrapper.calls.clear()
    x = Wrapper(numbers(device).view(1, 1, 2, 2))
    nn.functional.pad(x, (1, 1))
    nn.functional.linear(x, Wrapper(torch.eye(2, device=device)))
    nn.functional.layer_norm(x, (2,))
    torch.matmul(x, x)
    nn.functional.dropout(x, 0.5, training=False)
    nn.functional.scaled_dot_product_attention(x, x, x)
    # The device has flash attention under the name that CUDA's kernel has.
    return [str(call).replace("_for_cpu", "") for call in Wrapper.calls]


@program
def in_place_change_of_a_wrapper_changes_what_it_wraps(device):
    inner = numbers(device)
    x = Wrapper(inner)
    x.add_(1)
    x[1:].mul_(2)
    return inner, x._version


@program
def wrapper_as_parameter_trains(device):
    p = nn.Parameter(Wrapper(numbers(device)))
    optimizer = torch.optim.SGD([p], lr=0.5, foreach=False)
    (p * p).sum().backward()
    optimizer.step()
    return type(p).__name__, p.inner, p.grad.inner


@program
def wrapper_copies_to_the_host_and_back(device):
    Wrapper.calls.clear()
    x = Wrapper(numbers(device))
    back = x.to("cpu", copy=True).to(device, copy=True)
    return back.inner, list(Wrapper.calls), back.device


@program
def dispatch_mode_sees_the_operators_of_training(device):
    module = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU()).to(device)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1, foreach=False)
    x = torch.ones(2, 3, device=device)
    with NoteOperators() as mode:
        module(x).sum().backward()
        optimizer.step()
    return mode.calls


@program
def dispatch_mode_sees_factories_and_random_operators(device):
    with NoteOperators() as mode:
        x = torch.empty(2, device=device)
        x.normal_()
        torch.zeros(2, device=device)
        torch.randn(2, device=device)
        torch.arange(3, device=device)
        torch.tensor([1.0], device=device)
        torch.full((2,), 1.0, device=device)
        torch.eye(2, device=device)
        torch.randperm(3, device=device)
        x.new_zeros(2)
        torch.ones_like(x)
    return mode.calls


@program
def function_mode_sees_the_calls_of_python(device):
    class Note(TorchFunctionMode):
        calls: list[Any] = []  # noqa: RUF012

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.calls.append(getattr(func, "__name__", str(func)))
            return func(*args, **(kwargs or {}))

    Note.calls.clear()
    with Note():
        x = torch.ones(2, device=device)
        (x + 1).sum().item()
        x.requires_grad_().mul(2).sum().backward()
    return Note.calls, x.grad


@program
def default_device_makes_tensors(device):
    with torch.device(device):
        made = [
            torch.ones(2),
            torch.tensor([1]),
            torch.arange(2),
            nn.Linear(2, 1).weight,
        ]
        made.append(torch.empty(0).new_ones(1))
        made += [torch.randperm(3), torch.linspace(0, 1, 3), torch.eye(2)]
    torch.set_default_device(device)
    try:
        made += [torch.zeros(1), torch.as_tensor([2.0])]
        current = torch.get_default_device()
    finally:
        torch.set_default_device(None)
    return made, current, torch.ones(1).device.type == "cpu"


@program
def fake_tensors_know_the_device(device):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode() as mode:
        x = mode.from_tensor(numbers("cpu").to(device))
        y = torch.ones(4, device=device) + x
        moved = y.to("cpu")
    return (
        y.device,
        tuple(y.shape),
        moved.device == torch.device("cpu"),
        type(y).__name__,
    )


@program
def meta_tensors_move_to_the_device_empty(device):
    x = torch.ones(2, 3, device="meta")
    made = torch.empty_like(x, device=device).fill_(1)
    return made, refusal(lambda: x.to(device), "Cannot copy out of meta tensor")


@program
def tree_of_tensors_moves(device):
    tree = {"a": [torch.ones(1), (torch.zeros(2), None)], "b": "text"}
    return tree_map(lambda x: x.to(device) if isinstance(x, Tensor) else x, tree)


@program
def functional_tensors_of_export_agree(device):
    module = nn.Linear(3, 2).to(device)
    x = torch.ones(1, 3, device=device)
    exported = torch.export.export(module, (x,))
    return [str(node.target) for node in exported.graph.nodes], exported.module()(x)


@program
def traced_graph_has_the_same_operators(device):
    from torch.fx.experimental.proxy_tensor import make_fx

    def f(x):
        y = x.sin().view(2, 2)
        y.add_(1)
        return nn.functional.softmax(y @ y, -1)

    graph = make_fx(f)(numbers(device))
    return [str(node.target) for node in graph.graph.nodes], graph(numbers(device))
