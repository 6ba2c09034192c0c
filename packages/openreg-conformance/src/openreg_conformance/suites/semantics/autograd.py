# SPDX-License-Identifier: BSD-3-Clause
"""Backward passes: accumulation, modes, custom functions, double backward, errors."""

import warnings

import torch
import torch.utils.checkpoint
from torch import nn
from torch.autograd import Function, gradcheck, gradgradcheck

from openreg_conformance.checks.observing import Programs, refusal

_programs = Programs(__name__)
program, each, cases = _programs.program, _programs.each, _programs.cases


def leaf(device: str, *shape: int) -> torch.Tensor:
    size = torch.Size(shape or (3,))
    x = torch.linspace(-1, 2, size.numel(), device=device).view(size)
    return x.requires_grad_()


@program
def second_backward_pass_accumulates_in_place(device):
    x = leaf(device)
    (x * x).sum().backward()
    first = x.grad
    (x * 3).sum().backward()
    return first, x.grad


@program
def gradient_that_nothing_else_holds_is_stolen(device):
    x = leaf(device)
    seen = []

    class Give(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            made = grad * 2
            seen.append(made.data_ptr())
            return made

    Give.apply(x).sum().backward()
    return x.grad, x.grad.data_ptr() == seen[0]


@program
def gradient_that_is_held_is_copied(device):
    x, held = leaf(device), []

    class Give(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            held.append(grad * 2)
            return held[0]

    Give.apply(x).sum().backward()
    return x.grad, held, x.grad is held[0]


@program
def expanded_gradient_is_made_dense(device):
    x = leaf(device, 2, 3)
    x.sum().backward()
    return x.grad


@program
def gradient_takes_the_layout_of_its_leaf(device):
    x = leaf(device, 2, 3).detach().mT.requires_grad_()
    (x * torch.ones(3, 2, device=device)).sum().backward()
    y = leaf(device, 1, 2, 3, 3).detach().to(memory_format=torch.channels_last)
    y.requires_grad_()
    (y * 2).sum().backward()
    return x.grad, y.grad


@program
def gradient_accumulates_in_graph_when_one_is_made(device):
    x = leaf(device)
    (x * x).sum().backward(create_graph=True)
    first = x.grad
    (x * x * x).sum().backward(create_graph=True)
    return first.detach(), x.grad.detach(), first is x.grad, x.grad.requires_grad


@program
def sparse_gradients_accumulate(device):
    table = nn.Embedding(6, 2, sparse=True).to(device)
    table(torch.tensor([1, 4, 1], device=device)).sum().backward()
    first = table.weight.grad
    layouts = [first.layout, first._nnz()]
    table(torch.tensor([2], device=device)).sum().backward()
    return layouts, table.weight.grad, first is table.weight.grad


@program
def dense_gradient_is_added_to_a_sparse_one(device):
    weight = leaf(device, 4, 2)
    indices = torch.tensor([1, 3], device=device)
    nn.functional.embedding(indices, weight, sparse=True).sum().backward()
    sparse = weight.grad.layout
    (weight * 2).sum().backward()
    dense = weight.grad
    nn.functional.embedding(indices, weight, sparse=True).sum().backward()
    return sparse, dense, weight.grad


@program
def second_pass_through_a_freed_graph_is_refused(device):
    x = leaf(device)
    loss = (x * x).sum()
    loss.backward(retain_graph=True)
    loss.backward()
    return x.grad, refusal(loss.backward, "backward through the graph a second time")


@program
def backward_of_what_needs_a_gradient_argument_is_refused(device):
    x = leaf(device)
    return [
        refusal((x * 2).backward, "grad can be implicitly created only for scalar"),
        refusal(x.detach().backward, "does not require grad"),
        refusal(
            lambda: (x * 2).backward(torch.ones(2, device=device)), "Mismatch in shape"
        ),
        refusal(
            lambda: (x * 2).backward(torch.ones(3, device=device, dtype=torch.cfloat)),
            "are required to have the same dtype",
        ),
    ]


@program
def unused_input_is_refused_or_none_or_zeros(device):
    x, y = leaf(device), leaf(device)
    loss = (x * 2).sum()

    def grad(**options):
        return torch.autograd.grad(loss, (x, y), retain_graph=True, **options)

    return [
        refusal(grad, "appears to not have been used in the graph"),
        grad(allow_unused=True),
        grad(materialize_grads=True),
    ]


@program
def backward_with_inputs_leaves_the_others_alone(device):
    x, y = leaf(device), leaf(device)
    middle = x * y
    (middle * middle).sum().backward(inputs=[x])
    return x.grad, y.grad


@program
def batched_gradients_are_those_of_a_loop(device):
    x = leaf(device)
    y = x.exp()
    basis = torch.eye(3, device=device)
    return torch.autograd.grad(y, x, basis, is_grads_batched=True)


@program
def double_backward_gives_second_derivatives(device):
    x = leaf(device)
    (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x, create_graph=True)
    (third,) = torch.autograd.grad(second.sum(), x)
    return first.detach(), second.detach(), third


FUNCTIONS = {
    "tanh": torch.tanh,
    "cumprod": lambda x: torch.cumprod(x, 0),
    "inv": torch.linalg.inv,
    "gelu": nn.functional.gelu,
    "svd": lambda x: torch.svd(x)[1],
}


@program
@each("function", FUNCTIONS)
def gradcheck_passes(device, function):
    x = torch.eye(2, dtype=torch.float64) * 2 + torch.tensor([[0.1, 0.2], [0.3, 0.7]])
    x = x.to(device).requires_grad_()
    call = FUNCTIONS[function]
    return gradcheck(call, x), gradgradcheck(call, x)


@program
def in_place_change_of_a_leaf_is_refused(device):
    x = leaf(device)
    return [
        refusal(lambda: x.add_(1), "leaf Variable that requires grad"),
        refusal(lambda: x[1:].zero_(), "view of a leaf Variable"),
        refusal(lambda: torch.add(x, 1, out=x), "out=... arguments don't support"),
        refusal(lambda: torch._foreach_add_([x], 1), "leaf Variable"),
    ], x


@program
def in_place_change_of_a_view_goes_into_the_graph_of_its_base(device):
    x = leaf(device, 2, 3)
    y = x * 2
    view = y[0]
    view.mul_(3)
    y[1, 1:] = x[0, :2]
    names = [type(t.grad_fn).__name__ for t in (y, view)]
    y.sum().backward()
    return names, y.detach(), view.detach(), x.grad


@program
def in_place_change_of_a_view_from_unbind_is_refused(device):
    x = leaf(device, 2, 3)
    first, _ = (x * 2).unbind()
    return refusal(lambda: first.add_(1), "output of a function that returns multiple")


@program
def in_place_change_of_a_view_made_in_no_grad_is_refused(device):
    x = leaf(device)
    base = x * 2
    with torch.no_grad():
        view = base[1:]
    return refusal(lambda: view.add_(x[0]), "created in no_grad mode")


@program
def detached_view_stays_outside_the_graph(device):
    x = leaf(device)
    y = x * 2
    y.detach()[0] = 100.0
    y.sum().backward()
    return y.detach(), x.grad


@program
def anomaly_mode_finds_the_function_that_made_nan(device):
    x = leaf(device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autograd.detect_anomaly():
            loss = (x.clamp(min=0).sqrt() * 0).sum()
            return refusal(loss.backward, "'SqrtBackward0' returned nan values")


@program
def grad_modes_decide_what_requires_grad(device):
    x = leaf(device)
    with torch.no_grad():
        without = x * 2
        with torch.enable_grad():
            again = x * 2
    with torch.inference_mode():
        inference = x * 2
        unleashed = torch.ones(2, device=device)
        with torch.inference_mode(False):
            normal = x * 2
    with torch.set_grad_enabled(False):
        disabled = x * 2
    everything = [without, again, inference, unleashed, normal, disabled]
    return [(t.requires_grad, t.is_inference(), t.is_leaf) for t in everything]


@program
def inference_tensor_is_not_saved_for_backward(device):
    with torch.inference_mode():
        constant = torch.ones(3, device=device)
    x = leaf(device)
    return refusal(
        lambda: x * constant, "Inference tensors cannot be saved for backward"
    )


@program
def real_leaf_of_a_complex_computation_gets_a_real_gradient(device):
    x = leaf(device)
    (x * torch.full((3,), 1 + 2j, device=device)).abs().sum().backward()
    z = torch.full((2,), 1 + 1j, device=device, requires_grad=True)
    (z.conj() * z).real.sum().backward()
    return x.grad, z.grad, z.grad.is_conj()


@program
def dtype_of_a_gradient_follows_its_leaf(device):
    x = leaf(device).detach().half().requires_grad_()
    (x.float() * leaf(device).detach().double()).sum().backward()
    return x.grad


@program
def functional_jacobian_and_hessian_agree(device):
    x = leaf(device).detach()

    def f(x):
        return (x.sin() * x.cumsum(0)).sum()

    return [
        torch.autograd.functional.jacobian(lambda x: x.cumsum(0) * x, x),
        torch.autograd.functional.hessian(f, x),
        torch.autograd.functional.vhp(f, x, torch.ones_like(x)),
        torch.autograd.functional.jvp(torch.exp, x, torch.ones_like(x)),
        torch.autograd.functional.jacobian(torch.exp, x, vectorize=True),
    ]


@program
def multithreading_can_be_switched_off(device):
    x = leaf(device)
    with torch.autograd.set_multithreading_enabled(False):
        (x * x).sum().backward()
    return x.grad
