# SPDX-License-Identifier: BSD-3-Clause
"""Threads: thread-local and shared state."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import nn

from openreg_conformance.checks.observing import Programs, refusal

_programs = Programs(__name__)
program, each, cases = _programs.program, _programs.each, _programs.cases


def elsewhere(call: Callable[[], Any]) -> Any:
    """Runs a call in a separate thread; raises its exception."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


def leaf(device: str) -> torch.Tensor:
    return torch.linspace(-1, 2, 4, device=device).requires_grad_()


@program
def backward_in_another_thread_gives_the_gradients(device):
    x = leaf(device)
    loss = (x * x).exp().sum()
    elsewhere(loss.backward)
    return x.grad


@program
def backward_passes_of_many_threads_accumulate(device):
    x = leaf(device)
    ready = threading.Barrier(4)

    def work():
        ready.wait()
        (x * 3).sum().backward()

    with ThreadPoolExecutor(4) as pool:
        for each in [pool.submit(work) for _ in range(4)]:
            each.result()
    return x.grad.tolist()


@program
def backward_passes_over_one_graph_from_many_threads_agree(device):
    x = leaf(device)
    shared = x.exp()
    losses = [(shared * n).sum() for n in range(1, 5)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda loss: loss.backward(retain_graph=True), losses))
    return (x.grad / x.detach().exp()).round().tolist()


@program
def grad_mode_belongs_to_the_thread(device):
    x = leaf(device)
    with torch.no_grad():
        there = elsewhere(lambda: (torch.is_grad_enabled(), (x * 2).requires_grad))
        here = (x * 2).requires_grad
    with torch.inference_mode():
        inference = elsewhere(lambda: torch.ones(1, device=device).is_inference())
    return there, here, inference


@program
def autocast_belongs_to_the_thread(device):
    x = torch.eye(2, device=device)
    with torch.autocast(device, torch.bfloat16):
        there = elsewhere(lambda: (x @ x).dtype)
        here = (x @ x).dtype
    return there, here, (x @ x).dtype


@program
def autocast_in_a_backward_function_is_the_forwards(device):
    class Note(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type=device, cast_inputs=torch.float32)
        def forward(ctx, x):
            seen.append(torch.is_autocast_enabled(device))
            return x * 2

        @staticmethod
        @torch.amp.custom_bwd(device_type=device)
        def backward(ctx, grad):
            seen.append(torch.is_autocast_enabled(device))
            return grad * 2

    seen = []
    x = leaf(device)
    with torch.autocast(device, torch.bfloat16):
        y = Note.apply(x)
    y.sum().backward()
    return seen, x.grad


@program
def exception_of_a_hook_reaches_the_thread_that_called(device):
    x = leaf(device)

    def fail(grad):
        raise LookupError("lost")

    x.register_hook(fail)
    return refusal(lambda: elsewhere((x * x).sum().backward), "lost")


@program
def hooks_may_call_backward_again(device):
    x, inner = leaf(device), leaf(device)

    @torch.enable_grad()
    def again(grad):
        (inner * grad).sum().backward()

    x.register_hook(again)
    (x * x).sum().backward()
    return x.grad, inner.grad


@program
def saved_tensors_hooks_belong_to_the_thread(device):
    x, calls = leaf(device), []

    def pack(t):
        calls.append("pack")
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        elsewhere(lambda: x.exp())
        count = len(calls)
        x.exp()
    return count, len(calls)


@program
def hogwild_updates_reach_the_shared_parameters(device):
    module = nn.Linear(2, 1).to(device)
    with torch.no_grad():
        for p in module.parameters():
            p.zero_()
    lock = threading.Lock()

    def train():
        for _ in range(5):
            with lock:
                with torch.no_grad():
                    for p in module.parameters():
                        p.add_(1)
                versions.append(module.bias._version)

    versions = []
    with ThreadPoolExecutor(3) as pool:
        for each in [pool.submit(train) for _ in range(3)]:
            each.result()
    first = versions[0]
    values = [p.detach().clone() for p in module.parameters()]
    return [v - first for v in versions], values


@program
def threads_share_the_default_generator(device):
    torch.manual_seed(3)
    first = torch.rand(2, device=device)
    second = elsewhere(lambda: torch.rand(2, device=device))
    elsewhere(lambda: torch.manual_seed(3))
    return first, second, torch.rand(2, device=device)


@program
def dispatch_mode_belongs_to_the_thread(device):
    from torch.utils._python_dispatch import TorchDispatchMode

    class Note(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            calls.append(str(func))
            return func(*args, **(kwargs or {}))

    calls = []
    x = torch.ones(2, device=device)
    with Note():
        elsewhere(lambda: x + 1)
        x * 2
    return calls


@program
def default_device_belongs_to_the_thread(device):
    with torch.device(device):
        return elsewhere(lambda: torch.ones(1)).device.type == "cpu"
