# SPDX-License-Identifier: BSD-3-Clause
"""With the same seed, the device draws the same random numbers as the CPU."""

from __future__ import annotations

import torch


def test_a_seed_gives_the_numbers_of_the_cpu() -> None:
    torch.manual_seed(7)
    host = torch.randn(5)
    torch.manual_seed(7)
    assert torch.equal(torch.randn(5, device="cuda").cpu(), host)
    torch.cuda.manual_seed_all(7)
    assert torch.equal(torch.randn(5, device="cuda:1").cpu(), host)
    torch.cuda.manual_seed(7)
    assert torch.cuda.initial_seed() == 7


def test_states_are_kept() -> None:
    state = torch.cuda.get_rng_state()
    first = torch.rand(3, device="cuda")
    torch.cuda.set_rng_state(state)
    assert torch.equal(torch.rand(3, device="cuda"), first)
    states = torch.cuda.get_rng_state_all()
    assert len(states) == 2
    torch.cuda.set_rng_state_all(states)
    torch.cuda.seed()
    torch.cuda.seed_all()


def test_fork_rng() -> None:
    torch.manual_seed(3)
    with torch.random.fork_rng(devices=[0, 1]):
        inside = torch.rand(3, device="cuda")
    assert torch.equal(torch.rand(3, device="cuda"), inside)


def test_generators() -> None:
    generator = torch.Generator("cuda").manual_seed(5)
    numbers = torch.rand(3, device="cuda", generator=generator)
    host = torch.rand(3, generator=torch.Generator().manual_seed(5))
    assert torch.equal(numbers.cpu(), host)
    assert len(torch.cuda.default_generators) == 2
    assert torch.cuda.default_generators[1].device == torch.device("cuda:1")


def test_offsets() -> None:
    torch.cuda.manual_seed(1)
    assert torch.cuda._get_rng_state_offset() == 0
    torch.rand(4, device="cuda")
    offset = torch.cuda._get_rng_state_offset()
    assert offset > 0
    torch.cuda._set_rng_state_offset(0)
    assert torch.cuda._get_rng_state_offset() == 0
