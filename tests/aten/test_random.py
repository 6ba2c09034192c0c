# SPDX-License-Identifier: BSD-3-Clause
"""The device's generators give the CPU's numbers and leave the CPU's alone."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

import openreg_aten

# Each draws on device `d` with generator `g`; None is the default generator.
DRAWS: dict[str, Callable[[str, torch.Generator | None], Tensor]] = {
    "rand": lambda d, g: torch.rand(50, device=d, generator=g),
    "randn": lambda d, g: torch.randn(50, device=d, generator=g),
    "randn_few": lambda d, g: torch.randn(3, device=d, generator=g),
    "randint": lambda d, g: torch.randint(9, (50,), device=d, generator=g),
    "randperm": lambda d, g: torch.randperm(50, device=d, generator=g),
    "normal": lambda d, g: torch.normal(0.0, 2.0, (50,), device=d, generator=g),
    "normal_mean": lambda d, g: torch.normal(torch.ones(9, device=d), 2.0, generator=g),
    "uniform_": lambda d, g: torch.empty(50, device=d).uniform_(-1, 1, generator=g),
    "normal_": lambda d, g: torch.empty(7, 9, device=d).t().normal_(generator=g),
    "bernoulli": lambda d, g: torch.full((50,), 0.3, device=d).bernoulli(generator=g),
    "bernoulli_": lambda d, g: torch.empty(50, device=d).bernoulli_(0.3, generator=g),
    "exponential_": lambda d, g: torch.empty(50, device=d).exponential_(generator=g),
    "cauchy_": lambda d, g: torch.empty(50, device=d).cauchy_(generator=g),
    "log_normal_": lambda d, g: torch.empty(50, device=d).log_normal_(generator=g),
    "geometric_": lambda d, g: torch.empty(50, device=d).geometric_(0.3, generator=g),
    "random_": lambda d, g: torch.empty(50, device=d).random_(generator=g),
    "poisson": lambda d, g: torch.poisson(torch.full((9,), 3.0, device=d), generator=g),
    "multinomial": lambda d, g: torch.ones(9, device=d).multinomial(4, generator=g),
    "out": lambda d, g: torch.rand(9, out=torch.empty(9, device=d), generator=g),
}
WITHOUT_GENERATOR: dict[str, Callable[[str], Tensor]] = {
    "dropout": lambda d: F.dropout(torch.ones(50, device=d)),
    "alpha_dropout": lambda d: F.alpha_dropout(torch.ones(50, device=d), training=True),
    "rrelu": lambda d: F.rrelu(-torch.ones(50, device=d), training=True),
    "gumbel": lambda d: F.gumbel_softmax(torch.ones(50, device=d)),
    "rand_like": lambda d: torch.rand_like(torch.ones(50, device=d)),
    "randint_like": lambda d: torch.randint_like(torch.ones(50, device=d), 9),
}
NAMES = [*DRAWS, *WITHOUT_GENERATOR]


def draw(name: str, device: str) -> Tensor:
    if name in DRAWS:
        return DRAWS[name](device, None)
    return WITHOUT_GENERATOR[name](device)


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_gives_the_numbers_of_the_cpu(device: str, same, name: str) -> None:
    torch.manual_seed(5)
    expected = [draw(name, "cpu") for _ in range(2)]
    torch.manual_seed(5)
    same([draw(name, device) for _ in range(2)], expected)


@pytest.mark.parametrize("name", NAMES)
def test_draws_move_only_the_generator_of_their_device(device: str, name: str) -> None:
    other = openreg_aten._C.default_generator(1)
    before = torch.get_rng_state(), other.get_state()
    first = draw(name, device)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert torch.equal(other.get_state(), before[1])
    assert not torch.equal(first, draw(name, device)), "the generator stands still"


@pytest.mark.parametrize("name", DRAWS)
def test_explicit_generator_is_the_only_one_that_advances(
    device: str, same, name: str
) -> None:
    default = openreg_aten._C.default_generator(0)
    before = default.get_state()
    expected = DRAWS[name]("cpu", torch.Generator().manual_seed(7))
    own = torch.Generator(device).manual_seed(7)
    same(DRAWS[name](device, own), expected)
    assert torch.equal(default.get_state(), before)


@pytest.mark.parametrize("name", DRAWS)
def test_generator_of_the_cpu_is_refused(device: str, name: str) -> None:
    message = f"Expected a '{device}' device type for generator but found 'cpu'"
    with pytest.raises(RuntimeError, match=message):
        DRAWS[name](device, torch.Generator())


def test_generator_of_the_device_is_refused_by_the_cpu(device: str) -> None:
    with pytest.raises(RuntimeError, match=r"Expected.*cpu") as caught:
        torch.rand(3, generator=torch.Generator(device))
    assert device in str(caught.value)


def test_generator_has_state_seed_and_device(device: str) -> None:
    generator = torch.Generator(f"{device}:1")
    assert generator.device == torch.device(device, 1)
    assert generator.initial_seed() == torch.Generator().initial_seed()
    assert generator.manual_seed(11).initial_seed() == 11
    state = generator.get_state()
    assert state.device.type == "cpu"
    assert state.numel() == 16
    first = torch.rand(5, device=f"{device}:1", generator=generator)
    generator.set_state(state)
    assert torch.equal(first, torch.rand(5, device=f"{device}:1", generator=generator))
    on_cpu = torch.Generator().manual_seed(11)
    assert torch.equal(first.cpu(), torch.rand(5, generator=on_cpu))
    assert generator.seed() == generator.initial_seed()


def test_wrong_state_is_refused_and_changes_nothing(device: str) -> None:
    generator = torch.Generator(device).manual_seed(3)
    before = generator.get_state()
    with pytest.raises(RuntimeError, match=r"RNG state is wrong size: it has 7 bytes"):
        generator.set_state(torch.zeros(7, dtype=torch.uint8))
    with FakeTensorMode():
        fakes = [torch.zeros(n, dtype=torch.uint8) for n in (16, before.numel())]
    for fake in fakes:
        with pytest.raises(RuntimeError, match=r"RNG state|data is not allocated"):
            generator.set_state(fake)
    assert torch.equal(generator.get_state(), before)


def test_generator_can_be_cloned_and_pickled(device: str) -> None:
    generator = torch.Generator(device).manual_seed(3)
    torch.rand(5, device=device, generator=generator)
    twins = [
        generator.clone_state(),
        copy.deepcopy(generator),
        pickle.loads(pickle.dumps(generator)),
    ]
    expected = torch.rand(5, device=device, generator=generator)
    for twin in twins:
        assert twin.device == generator.device
        assert torch.equal(torch.rand(5, device=device, generator=twin), expected)


def test_manual_seed_seeds_every_device(device: str) -> None:
    torch.manual_seed(21)
    first = [torch.rand(3, device=f"{device}:{i}") for i in range(2)]
    assert torch.equal(first[0].cpu(), first[1].cpu())
    torch.manual_seed(21)
    for index, expected in enumerate(first):
        assert torch.equal(torch.rand(3, device=f"{device}:{index}"), expected)


@pytest.mark.parametrize("p", [0.0, 0.1, 0.25, 0.3, 0.4, 0.5, 0.9, 1.0])
def test_dropout_backward_has_the_mask_and_bits_of_the_forward(both, p: float) -> None:
    def run(x: Tensor) -> tuple[Tensor, Tensor]:
        torch.manual_seed(4)
        leaf = x.clone().requires_grad_()
        out = F.dropout(leaf, p)
        (grad,) = torch.autograd.grad(out, leaf, x.flip(0))
        return out.detach(), grad

    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
        both(run, torch.randn(50, 7).to(dtype))
