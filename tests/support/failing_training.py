# SPDX-License-Identifier: BSD-3-Clause
"""Training programs for sweeps: a failure is injected at each launch in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import nn

from torch_openreg.testing import inject_failure

FIRST, SECOND = "openreg:0", "openreg:1"
STEPS = 2

Training = Callable[[], list[float]]


def _model(device: str) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)).to(device)


def _batches() -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(6, 4, generator=generator) for _ in range(STEPS)]


def numbers(
    losses: Iterable[torch.Tensor], parameters: Iterable[torch.Tensor]
) -> list[float]:
    """Reads the results of a training: its losses, and a sum of each parameter."""
    values = [*losses, *(parameter.sum() for parameter in parameters)]
    return [value.item() for value in values]


def train_on_two_devices() -> list[float]:
    """Trains with half of the model on each device, and reads on the second one."""
    first, second = _model(FIRST), nn.Linear(2, 1).to(SECOND)
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], 0.1)
    losses = []
    for batch in _batches():
        optimizer.zero_grad()
        loss = second(first(batch.to(FIRST)).to(SECOND)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return numbers(losses, [parameter.to(SECOND) for parameter in first.parameters()])


def train_with_a_prefetch_stream() -> list[float]:
    """Copies each batch on a separate stream while the previous one is in use."""
    model = _model(FIRST)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    compute = torch.accelerator.current_stream(FIRST)
    prefetch = torch.Stream(FIRST)

    def fetch(batch: torch.Tensor) -> torch.Tensor:
        with prefetch:
            return batch.pin_memory().to(FIRST, non_blocking=True).mul(2)

    losses = []
    batches = [*_batches(), torch.zeros(6, 4)]
    following = fetch(batches[0])
    for batch in batches[1:]:
        compute.wait_stream(prefetch)
        current = following
        current.record_stream(compute)
        following = fetch(batch)
        optimizer.zero_grad()
        loss = model(current).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return numbers(losses, model.parameters())


def train_with_a_graph() -> list[float]:
    """Captures a step with two branches, and replays it for each batch."""
    model = _model(FIRST)
    parameters = list(model.parameters())
    static = torch.zeros(6, 4, device=FIRST)
    branch = torch.Stream(FIRST)

    def step() -> torch.Tensor:
        loss = model(static).square().mean()
        gradients = torch.autograd.grad(loss, parameters)
        stream = torch.accelerator.current_stream(FIRST)
        branch.wait_stream(stream)
        with branch:
            scaled = [gradient * 0.1 for gradient in gradients]
        stream.wait_stream(branch)
        with torch.no_grad():
            for parameter, gradient in zip(parameters, scaled, strict=True):
                parameter.sub_(gradient)
        return loss.detach()

    saved = [parameter.detach().clone() for parameter in parameters]
    side, current = torch.Stream(FIRST), torch.accelerator.current_stream(FIRST)
    side.wait_stream(current)
    with side:
        step()  # caches the shapes of results
        graph = torch.accelerator.Graph()
        with graph:
            loss = step()
        with torch.no_grad():
            for parameter, value in zip(parameters, saved, strict=True):
                parameter.copy_(value)
    current.wait_stream(side)
    losses = []
    for batch in _batches():
        static.copy_(batch)
        graph.replay()
        losses.append(loss.clone())
    return numbers(losses, parameters)


PROGRAMS: dict[str, Training] = {
    "two devices": train_on_two_devices,
    "prefetch stream": train_with_a_prefetch_stream,
    "graph": train_with_a_graph,
}


def forget_failures() -> None:
    """Waits for all devices until none has a failure left."""
    for device in (FIRST, SECOND):
        for _ in range(100):
            try:
                torch.accelerator.synchronize(device)
            except torch.AcceleratorError:
                continue
            break
        else:
            raise AssertionError(f"{device} reports failures without end")


def sweep(name: str) -> tuple[int, int, list[int]]:
    """Runs a program once for each of its launches, and makes that launch fail.

    Returns:
        The number of launches, the number of runs that raised the injected failure, and
        the launches whose failure changed values without an error. The number of
        launches and the affected launches may differ slightly between runs.
    """
    program = PROGRAMS[name]
    program()  # the first run also caches the shapes of results
    expected = program()
    with inject_failure("launch", first=2**40) as counted:
        assert program() == expected
    launches = counted.calls
    raised, silent = 0, []
    for launch in range(1, launches + 1):
        with inject_failure("launch", first=launch):
            try:
                values = program()
            except RuntimeError as error:
                if "injected failure" not in str(error):
                    raise
                raised += 1
            else:
                if values != expected:
                    silent.append(launch)
        forget_failures()
        assert program() == expected, f"after the failure of launch {launch}"
    return launches, raised, silent
