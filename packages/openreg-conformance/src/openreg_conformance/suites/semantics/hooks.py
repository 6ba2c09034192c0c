# SPDX-License-Identifier: BSD-3-Clause
"""Hooks of tensors, gradients, saved tensors and the graph: count and order."""

import gc
import weakref

import torch
from torch import nn
from torch.autograd import graph

from openreg_conformance.checks.observing import Host, Programs, refusal

_programs = Programs(__name__)
program, each, cases = _programs.program, _programs.each, _programs.cases


def leaf(device: str) -> torch.Tensor:
    return torch.linspace(-1, 2, 4, device=device).requires_grad_()


@program
def tensor_hooks_are_called_in_order_and_may_replace(device):
    x, calls = leaf(device), []

    def note(name, factor):
        def hook(grad):
            calls.append((name, grad.clone()))
            return grad * factor if factor else None

        return hook

    x.register_hook(note("first", 2))
    removed = x.register_hook(note("removed", 5))
    x.register_hook(note("last", None))
    removed.remove()
    (x * x).sum().backward()
    return calls, x.grad


@program
def hook_of_an_inner_tensor_sees_its_whole_gradient_once(device):
    x, calls = leaf(device), []
    y = x * 2
    y.register_hook(lambda grad: calls.append(grad.clone()))
    (y.sum() + (y * y).sum()).backward()
    return calls, x.grad


@program
def hook_of_a_leaf_is_called_once_for_many_uses(device):
    x, calls = leaf(device), []
    x.register_hook(lambda grad: calls.append(grad.clone()))
    x.register_post_accumulate_grad_hook(lambda x: calls.append(x.grad.clone()))
    (x * x + x.exp()).sum().backward()
    return calls


@program
def post_accumulate_hook_may_take_the_gradient(device):
    x, taken = leaf(device), []

    def take(x):
        taken.append(x.grad)
        x.grad = None

    x.register_post_accumulate_grad_hook(take)
    for _ in range(2):
        (x * 3).sum().backward()
    return taken, x.grad


@program
def hooks_that_return_nonsense_are_refused(device):
    def backward(result):
        x = leaf(device)
        x.register_hook(lambda grad: result(grad))
        x.sum().backward()

    return [
        refusal(
            lambda: backward(lambda g: "x"), "expected Variable, but hook returned"
        ),
        refusal(lambda: backward(lambda g: g.double()), "changed the type of value"),
        refusal(lambda: backward(lambda g: g[:2]), "changed the size of value"),
    ]


@program
def retained_gradient_of_an_inner_tensor_is_kept(device):
    x = leaf(device)
    y = x * 2
    y.retain_grad()
    z = y * y
    z.retain_grad()
    z.sum().backward()
    return y.retains_grad, y.grad, z.grad, x.grad


@program
def retained_gradient_follows_an_in_place_change(device):
    x = leaf(device)
    y = x * 2
    y.retain_grad()
    y.mul_(3)
    y.sum().backward()
    return y.grad, x.grad


@program
def gradient_of_an_inner_tensor_warns(device):
    y = leaf(device) * 2
    return y.grad


@program
def node_hooks_see_gradients_before_and_after(device):
    x, calls = leaf(device), []
    y = (x * 2).exp()
    y.grad_fn.register_prehook(lambda grads: calls.append(("pre", *grads)))
    y.grad_fn.register_hook(
        lambda inputs, outputs: calls.append(("post", *inputs, *outputs))
    )
    y.sum().backward()
    return [[c[0], *(g.clone() for g in c[1:])] for c in calls]


@program
def multi_grad_hook_is_called_when_all_are_there(device):
    a, b, calls = leaf(device), leaf(device), []
    graph.register_multi_grad_hook(
        (a, b), lambda grads: calls.append([g is None for g in grads])
    )
    graph.register_multi_grad_hook((a, b), lambda grad: calls.append("any"), mode="any")
    (a * b).sum().backward()
    (a * 2).sum().backward()
    return calls


@program
def saved_tensors_pass_through_the_hooks(device):
    calls = []

    def pack(t):
        calls.append(("pack", t.detach().clone()))
        return t.detach().cpu()

    def unpack(t):
        calls.append(("unpack", Host(t.clone())))
        return t.to(device)

    x = leaf(device)
    with graph.saved_tensors_hooks(pack, unpack):
        y = (x * x).exp().sum()
    y.backward()
    return calls, x.grad


@program
def hook_of_one_saved_tensor_is_called(device):
    x, calls = leaf(device), []
    y = x.exp()
    y.grad_fn._raw_saved_result.register_hooks(
        lambda t: calls.append("pack") or t * 2, lambda t: calls.append("unpack") or t
    )
    y.sum().backward()
    return calls, x.grad


@program
def saved_tensors_hooks_may_be_forbidden(device):
    x = leaf(device)
    with graph.disable_saved_tensors_hooks("not here"):

        def enter():
            with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                return x * x

        return refusal(enter, "not here")


@program
def saved_tensor_that_a_hook_changed_is_refused(device):
    x = leaf(device)

    def forward():
        with graph.saved_tensors_hooks(lambda t: t.add_(1), lambda t: t):
            return (x * 2).exp()

    return refusal(forward, "modifying its input in place")


@program
def saved_tensors_wait_on_the_host(device):
    x = leaf(device)
    with graph.save_on_cpu():
        y = (x * x).sin() * x
    y.sum().backward()
    return y.detach(), x.grad


@program
def mutation_of_saved_tensors_may_be_allowed(device):
    x = leaf(device)
    y = x * 1
    with graph.allow_mutation_on_saved_tensors():
        z = (y * y).sum()
        y.add_(5)
        z.backward()
    return y.detach(), x.grad


@program
def saved_tensors_are_the_inputs_themselves(device):
    x, w = leaf(device), leaf(device)
    y = x * w
    saved = y.grad_fn._saved_self, y.grad_fn._saved_other
    z = x.exp()
    return saved[0] is x, saved[1] is w, z.grad_fn._saved_result is z


@program
def graph_names_its_nodes(device):
    x = leaf(device)
    y = (x.view(2, 2) @ x.view(2, 2)).relu().sum(0).softmax(0)[0]
    names, nodes = [], [y.grad_fn]
    while nodes:
        node = nodes.pop(0)
        names.append(node.name())
        nodes += [each for each, _ in node.next_functions if each is not None]
    return names


@program
def gradient_edge_stands_for_its_tensor(device):
    x = leaf(device)
    y = x * 2
    edge = graph.get_gradient_edge(y)
    (gradient,) = torch.autograd.grad((y * y).sum(), edge)
    return gradient, edge.output_nr


@program
def full_backward_hooks_of_modules_see_gradients(device):
    module, calls = nn.Linear(4, 2).to(device), []
    module.register_full_backward_pre_hook(
        lambda m, out: calls.append(("pre", out[0].clone()))
    )
    module.register_full_backward_hook(
        lambda m, inp, out: calls.append(("post", inp[0].clone(), out[0].clone()))
    )
    x = leaf(device)
    module(x).sum().backward()
    return calls, x.grad


@program
def full_backward_hook_refuses_an_in_place_change_of_its_input(device):
    module = nn.Linear(4, 2).to(device)
    module.register_full_backward_hook(lambda *_: None)
    y = module(leaf(device))
    return refusal(lambda: y.add_(1), "BackwardHookFunction")


@program
def global_module_hooks_are_called(device):
    calls = []
    handle = nn.modules.module.register_module_forward_hook(
        lambda m, *_: calls.append(type(m).__name__)
    )
    try:
        nn.Sequential(nn.Linear(4, 2), nn.ReLU()).to(device)(leaf(device))
    finally:
        handle.remove()
    return calls


@program
def graph_frees_its_tensors_after_backward(device):
    x = leaf(device)
    middle = x.exp()
    reference = weakref.ref(middle)
    loss = middle.sum()
    loss.backward()
    del middle
    gc.collect()
    return reference() is None


@program
def order_of_nodes_is_the_reverse_of_the_forward_pass(device):
    calls = []

    def named(name):
        class Note(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 1

            @staticmethod
            def backward(ctx, grad):
                calls.append(name)
                return grad

        return Note.apply

    x = leaf(device)
    branches = [named(f"branch {n}")(named(f"root {n}")(x)) for n in range(3)]
    sum(branches).sum().backward()
    return calls
