# SPDX-License-Identifier: BSD-3-Clause
"""Enqueued kernels see modes, generators and threads as the call that enqueued them."""

from __future__ import annotations

import threading
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from support.latches import Latches
from support.paths import paths


def test_kernels_are_no_business_of_the_modes_of_who_waits(
    device: str, latch: Latches
) -> None:
    class Seen(TorchDispatchMode):
        names: ClassVar[list[str]] = []

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            self.names.append(str(func))
            return func(*args, **(kwargs or {}))

    x = torch.randn(64, 64, device=device)
    work = torch.linalg.svdvals
    work(x)
    held = latch()
    results = [work(x) for _ in range(20)]
    held.release()
    with Seen():
        torch.accelerator.synchronize()
    assert Seen.names == []
    for result in results:
        assert torch.equal(result.cpu(), work(x.cpu()))


def test_threads_ask_one_generator_for_its_state_while_kernels_draw(
    device: str,
) -> None:
    generator = torch.Generator(device)
    failures: list[Exception] = []

    def ask() -> None:
        try:
            x = torch.empty(1 << 18, device=device)
            for _ in range(30):
                x.normal_(generator=generator)
                generator.get_state()
                generator.clone_state()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def draw(device: str) -> list[Tensor]:
    """Draws random numbers in several ways, also after new seeds."""
    torch.manual_seed(3)
    x = torch.ones(5, device=device)
    drawn = [torch.rand(5, device=device), torch.randn(5, device=device)]
    drawn += [x.clone().bernoulli_(0.4), F.dropout(x, 0.3)]
    torch.manual_seed(5)
    return [*drawn, torch.randn(5, device=device), torch.rand_like(x)]


def test_random_numbers_are_enqueued_in_the_order_of_the_program(
    device: str, latch: Latches
) -> None:
    draw(device)
    held = latch()
    drawn: list[Tensor] = []
    counts = paths(lambda: drawn.extend(draw(device)))
    assert set(counts) == {"enqueued"}
    assert not torch.accelerator.current_stream().query()
    held.release()
    for here, on_cpu in zip(drawn, draw("cpu"), strict=True):
        assert torch.equal(here.cpu(), on_cpu)


def test_streams_take_their_turns_at_a_generator(device: str, latch: Latches) -> None:
    x = torch.empty(100, device=device)
    x.normal_()
    torch.manual_seed(1)
    side = torch.Stream(device)
    held = latch()
    x.normal_()
    with side:
        y = torch.empty(100, device=device)
        y.normal_()
    assert not side.query()
    held.release()
    torch.accelerator.synchronize()
    torch.manual_seed(1)
    assert torch.equal(x.cpu(), torch.empty(100).normal_())
    assert torch.equal(y.cpu(), torch.empty(100).normal_())


def test_state_of_a_generator_is_the_one_after_enqueued_numbers(
    device: str, latch: Latches
) -> None:
    generator = torch.Generator(device)
    on_cpu = torch.Generator()
    x = torch.empty(100, device=device).normal_(generator=generator)
    for each in (generator, on_cpu):
        each.manual_seed(8)
    held = latch()
    x.normal_(generator=generator)
    threading.Timer(0.05, held.release).start()
    state = generator.get_state()
    torch.empty(100).normal_(generator=on_cpu)
    twin = torch.Generator(device)
    twin.set_state(on_cpu.get_state())
    assert torch.equal(state, twin.get_state())
    assert generator.initial_seed() == 8


def test_kernel_has_the_threads_of_the_thread_that_enqueued_it(
    device: str, latch: Latches
) -> None:
    here = torch.get_num_threads()
    values = torch.randn(300_000, generator=torch.Generator().manual_seed(0))
    x = values.to(device)
    x.sum()
    try:
        for count in (2, 1, 3):
            torch.set_num_threads(count)
            held = latch()
            total = x.sum()
            held.release()
            assert torch.equal(total.cpu(), values.sum())
            counts: list[int] = []
            thread = threading.Thread(
                target=lambda counts=counts: counts.append(torch.get_num_threads())
            )
            thread.start()
            thread.join()
            assert [torch.get_num_threads(), *counts] == [count, count]
    finally:
        torch.set_num_threads(here)
