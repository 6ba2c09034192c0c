# SPDX-License-Identifier: BSD-3-Clause
"""Training over several devices, streams and threads, with operators enqueued."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor, nn

from support.latches import Latches
from support.programs import Program, both_ways

EIGHT = """
import torch
from concurrent.futures import ThreadPoolExecutor
from torch import nn

def place(index):
    return DEVICE

class Pipeline(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList(nn.Linear(48, 48).to(place(i)) for i in range(8))

    def forward(self, x):
        skipped = x
        for i, layer in enumerate(self.layers):
            x = layer(x.to(place(i))).tanh()
        return x + skipped.to(place(7))

torch.set_num_threads(1)

def train(model, x, y):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [loss.item() for loss in losses]

torch.manual_seed(1)
x, y = torch.randn(64, 48), torch.randn(64, 48)
print(train(Pipeline(), x.to(place(0)), y.to(place(7))))

def alone(index):
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(index)
    model = nn.Linear(48, 48)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) / 7)
    return train(model.to(place(index)), x.to(place(index)), y.to(place(index)))

with ThreadPoolExecutor(8) as pool:
    print(list(pool.map(alone, range(8))))
"""


@both_ways
def test_eight_devices_train_in_one_process(
    fork_script: Program, inline_bytes: str
) -> None:
    result = fork_script(
        EIGHT.replace("DEVICE", 'f"openreg:{index}"'),
        OPENREG_DEVICE_COUNT="8",
        OPENREG_INLINE_BYTES=inline_bytes,
    )
    assert result.returncode == 0, result.stderr
    expected = fork_script(EIGHT.replace("DEVICE", '"cpu"'))
    assert expected.returncode == 0, expected.stderr
    assert result.stdout == expected.stdout
    assert result.stderr == ""


def test_backward_pass_over_two_devices_does_not_wait(
    device: str, latch: Latches
) -> None:
    def build(first: str, second: str) -> Callable[[], tuple[Tensor, Tensor]]:
        torch.manual_seed(0)
        weights = [
            torch.randn(30, 30).to(where).requires_grad_() for where in (first, second)
        ]
        x = torch.randn(20, 30).to(first)

        def step() -> tuple[Tensor, Tensor]:
            hidden = (x @ weights[0]).tanh().to(second)
            loss = (hidden @ weights[1]).square().sum()
            gradients = torch.autograd.grad(loss, weights)
            return gradients[0], gradients[1]

        return step

    step = build(f"{device}:0", f"{device}:1")
    step()
    for index in range(2):
        torch.accelerator.synchronize(index)
    held = [latch(0), latch(1)]
    gradients = step()
    assert held[0].holds
    assert held[1].holds
    for each in held:
        each.release()
    for ours, theirs in zip(gradients, build("cpu", "cpu")(), strict=True):
        assert torch.equal(ours.cpu(), theirs)


def test_copy_between_devices_runs_after_the_work_of_both(
    device: str, latch: Latches
) -> None:
    source = torch.zeros(50, device=f"{device}:0")
    target = torch.zeros(50, device=f"{device}:1")

    def work() -> Tensor:
        source.add_(4)
        target.sub_(3)
        target.copy_(source)
        source.add_(100)  # not visible to the copy
        return target * 10

    work()
    for index in range(2):
        torch.accelerator.synchronize(index)
    held = [latch(0), latch(1)]
    read = work()
    assert all(each.holds for each in held)
    held[1].release()
    assert not torch.accelerator.current_stream(1).query()
    held[0].release()
    assert read.eq(1080).all()
    assert target.eq(108).all()
    assert source.eq(208).all()


def test_backward_pass_runs_on_the_stream_of_the_forward_pass(
    device: str, latch: Latches
) -> None:
    x = torch.arange(12.0, device=device).view(3, 4).requires_grad_()

    def forward() -> Tensor:
        return (x * x).sin().sum()

    forward().backward()
    x.grad = None
    side = torch.Stream(device)
    torch.accelerator.synchronize()
    with side:
        loss = forward()
    held = latch()  # the unrelated default stream
    with side:
        (gradient,) = torch.autograd.grad(loss, x)
    side.synchronize()
    assert held.holds
    held.release()
    cpu = torch.arange(12.0).view(3, 4).requires_grad_()
    (expected,) = torch.autograd.grad((cpu * cpu).sin().sum(), cpu)
    assert torch.equal(gradient.cpu(), expected)


def test_default_stream_may_use_gradients_of_a_side_stream(device: str) -> None:
    torch.manual_seed(0)
    weight, x = torch.randn(60, 60), torch.randn(300, 60)
    ours = weight.to(device).requires_grad_()
    theirs = weight.clone().requires_grad_()
    there = x.to(device)
    side = torch.Stream(device)
    for _ in range(20):
        side.wait_stream(torch.accelerator.current_stream())
        with side:
            loss = (there @ ours).tanh().sum()
        ours.grad = None
        loss.backward()  # makes this stream wait for the other
        with torch.no_grad():
            ours -= 0.01 * ours.grad
    for _ in range(20):
        theirs.grad = None
        (x @ theirs).tanh().sum().backward()
        with torch.no_grad():
            theirs -= 0.01 * theirs.grad
    assert torch.equal(ours.detach().cpu(), theirs.detach())


def test_threads_enqueue_on_one_held_stream_each_in_its_order(
    device: str, latch: Latches
) -> None:
    start = torch.zeros(8, device=device)
    (start + 1).mul_(0.5)
    torch.accelerator.synchronize()
    held = latch()

    def chain(seed: int) -> Tensor:
        x = start
        for i in range(50):
            x = (x + i * seed).mul_(0.5)
        return x

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(chain, range(8)))
    assert held.holds
    held.release()
    start = start.cpu()
    for seed, result in enumerate(results):
        assert torch.equal(result.cpu(), chain(seed))


def test_layers_of_streams_in_threads_train_as_on_the_cpu(device: str) -> None:
    """Each thread has its own stream on one device, and all are busy at the same
    time."""

    def train(where: str, seed: int) -> list[Tensor]:
        torch.set_num_threads(1)
        generator = torch.Generator().manual_seed(seed)
        model = nn.Sequential(nn.Linear(100, 200), nn.ReLU(), nn.Linear(200, 10))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=generator) / 9)
        model.to(where)
        x = torch.randn(200, 100, generator=generator).to(where)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        for _ in range(5):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
        return [parameter.detach().cpu() for parameter in model.parameters()]

    def on_a_stream(seed: int) -> list[Tensor]:
        with torch.Stream(device):
            return train(device, seed)

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(on_a_stream, range(4)))
    for seed, result in enumerate(results):
        for ours, theirs in zip(result, train("cpu", seed), strict=True):
            assert torch.equal(ours, theirs)
