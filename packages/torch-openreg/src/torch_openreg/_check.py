# SPDX-License-Identifier: BSD-3-Clause
"""A self-check of the installed device, with one small program per part.

Each check compares with the CPU and raises an exception if the device differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from torch_openreg.openreg._utils import device_type


def run() -> Iterator[tuple[str, Exception | None]]:
    """Runs every check, in a few seconds.

    Yields:
        The name of a check, and its error if it failed.
    """
    for name, check in _CHECKS.items():
        try:
            check(torch.device(device_type(), 0))
        except Exception as error:
            yield name, error
        else:
            yield name, None


def _expect(condition: bool, failure: str) -> None:
    if not condition:
        raise RuntimeError(failure)


def _copies(device: torch.device) -> None:
    x = torch.randn(257, 129)
    torch.testing.assert_close(x.to(device).T.cpu(), x.T, rtol=0, atol=0)


def _operators(device: torch.device) -> None:
    x, y = torch.randn(65, 33), torch.randn(33, 17)
    there = torch.softmax(x.to(device) @ y.to(device), 1)
    torch.testing.assert_close(there.cpu(), torch.softmax(x @ y, 1))


def _gradients(device: torch.device) -> None:
    here = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU())
    there = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU()).to(device)
    there.load_state_dict(here.state_dict())
    x = torch.randn(2, 1, 8, 8)
    here(x).sum().backward()
    there(x.to(device)).sum().backward()
    for a, b in zip(there.parameters(), here.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad, check_device=False)


def _random_numbers(device: torch.device) -> None:
    there = torch.Generator(device).manual_seed(5)
    here = torch.Generator().manual_seed(5)
    x = torch.rand(99, generator=there, device=device)
    torch.testing.assert_close(x.cpu(), torch.rand(99, generator=here), rtol=0, atol=0)


def _streams_and_events(device: torch.device) -> None:
    stream, event = torch.Stream(device), torch.Event(device)
    before = torch.accelerator.current_stream(device)
    with stream:
        x = torch.full((1000,), 2.0, device=device)
        event.record(stream)
    before.wait_event(event)
    torch.testing.assert_close((x * x).cpu(), torch.full((1000,), 4.0))
    event.synchronize()
    _expect(event.query(), "an event that was waited for has not happened")


def _memory(device: torch.device) -> None:
    before = torch.accelerator.memory_allocated(device)
    x = torch.empty(2**20, dtype=torch.uint8, device=device)
    used = torch.accelerator.memory_allocated(device) - before
    _expect(used == x.nbytes, f"{x.nbytes} bytes are counted as {used}")
    del x
    left = torch.accelerator.memory_allocated(device) - before
    _expect(left == 0, f"{left} bytes are left")
    try:
        torch.empty(2**50, dtype=torch.uint8, device=device)
    except torch.OutOfMemoryError:
        return
    _expect(False, "a tensor of a pebibyte was allocated")


def _autocast(device: torch.device) -> None:
    x = torch.randn(8, 8)
    with torch.autocast(device.type, dtype=torch.bfloat16):
        there = torch.mm(x.to(device), x.to(device))
    torch.testing.assert_close(there.cpu(), x.bfloat16() @ x.bfloat16())


_CHECKS: dict[str, Callable[[torch.device], None]] = {
    "copies": _copies,
    "operators": _operators,
    "gradients": _gradients,
    "random numbers": _random_numbers,
    "streams and events": _streams_and_events,
    "memory": _memory,
    "autocast": _autocast,
}
