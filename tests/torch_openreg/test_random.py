# SPDX-License-Identifier: BSD-3-Clause
"""torch.openreg's generators: seeds, states, and independence of the CPU's."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

Output = Callable[..., str]

DRAWS: dict[str, Callable[[str], torch.Tensor]] = {
    "rand": lambda device: torch.rand(100, device=device),
    "randn": lambda device: torch.randn(100, device=device),
    "randint": lambda device: torch.randint(0, 1000, (100,), device=device),
    "randperm": lambda device: torch.randperm(100, device=device),
    "bernoulli": lambda device: torch.full((100,), 0.3, device=device).bernoulli(),
    "normal_": lambda device: torch.empty(100, device=device).normal_(1, 2),
    "exponential_": lambda device: torch.empty(100, device=device).exponential_(),
    "multinomial": lambda device: torch.ones(50, device=device).multinomial(20),
    "dropout": lambda device: torch.dropout(
        torch.ones(100, device=device), p=0.4, train=True
    ),
}


@pytest.mark.parametrize("name", DRAWS)
def test_same_seed_gives_the_numbers_of_the_cpu(name: str) -> None:
    torch.manual_seed(1234)
    on_device, on_cpu = DRAWS[name]("openreg"), DRAWS[name]("cpu")
    assert on_device.is_openreg
    assert torch.equal(on_device.cpu(), on_cpu)


@pytest.mark.parametrize("name", DRAWS)
def test_draws_do_not_change_the_generator_of_the_cpu(name: str) -> None:
    before = torch.get_rng_state()
    DRAWS[name]("openreg")
    assert torch.equal(torch.get_rng_state(), before)


def test_draws_on_one_device_do_not_change_the_other() -> None:
    before = torch.openreg.get_rng_state(1)
    torch.rand(10, device="openreg:0")
    assert torch.equal(torch.openreg.get_rng_state(1), before)


def test_manual_seed_repeats_the_numbers_of_the_current_device() -> None:
    with torch.openreg.device(1):
        torch.openreg.manual_seed(7)
        first = torch.rand(5, device="openreg:1")
        other = torch.openreg.get_rng_state(0)
        torch.openreg.manual_seed(7)
        assert torch.openreg.initial_seed() == 7
        assert torch.equal(torch.openreg.get_rng_state(0), other)
        assert torch.equal(torch.rand(5, device="openreg:1"), first)


@pytest.mark.parametrize("seed", [torch.manual_seed, torch.openreg.manual_seed_all])
def test_seeding_all_devices_makes_them_equal(seed: Callable[[int], object]) -> None:
    seed(11)
    first, second = (torch.rand(5, device=f"openreg:{i}").cpu() for i in range(2))
    assert torch.equal(first, second)


def test_random_seed_changes_the_numbers() -> None:
    torch.openreg.manual_seed_all(3)
    torch.openreg.seed()
    assert torch.openreg.initial_seed() != 3
    torch.openreg.seed_all()
    seeds = {g.initial_seed() for g in torch.openreg.default_generators}
    assert len(seeds) == 1
    assert seeds != {3}


def test_torch_seed_reaches_the_devices() -> None:
    seed = torch.seed()
    assert torch.openreg.initial_seed() == seed


@pytest.mark.parametrize("device", [None, 1, "openreg:1", torch.device("openreg", 1)])
def test_state_round_trip_repeats_the_numbers(
    device: int | str | torch.device | None,
) -> None:
    place = "openreg:0" if device is None else "openreg:1"
    state = torch.openreg.get_rng_state(device)
    assert state.dtype is torch.uint8
    assert state.device.type == "cpu"
    assert state.shape == (16,)
    first = torch.rand(5, device=place)
    torch.openreg.set_rng_state(state, device)
    assert torch.equal(torch.rand(5, device=place), first)


def test_states_of_all_devices_round_trip() -> None:
    states = torch.openreg.get_rng_state_all()
    first = [torch.rand(5, device=f"openreg:{i}") for i in range(2)]
    torch.openreg.set_rng_state_all(states)
    for i, numbers in enumerate(first):
        assert torch.equal(torch.rand(5, device=f"openreg:{i}"), numbers)


def test_state_of_the_cpu_gives_the_numbers_of_the_cpu() -> None:
    torch.openreg.set_rng_state(torch.get_rng_state())
    assert torch.equal(torch.rand(5, device="openreg").cpu(), torch.rand(5))


@pytest.mark.parametrize(
    "state", [torch.zeros(17, dtype=torch.uint8), torch.zeros(16), torch.zeros(5056)]
)
def test_state_of_wrong_size_or_type_is_refused(state: torch.Tensor) -> None:
    before = torch.openreg.get_rng_state()
    with pytest.raises((RuntimeError, TypeError)):
        torch.openreg.set_rng_state(state)
    assert torch.equal(torch.openreg.get_rng_state(), before)


def test_fork_rng_restores_every_device() -> None:
    before = torch.openreg.get_rng_state_all()
    with torch.random.fork_rng(devices=range(2), device_type="openreg"):
        torch.rand(5, device="openreg:0")
        torch.rand(5, device="openreg:1")
    after = torch.openreg.get_rng_state_all()
    assert all(map(torch.equal, before, after))


def test_generator_argument_decides_the_numbers() -> None:
    generator = torch.Generator("openreg").manual_seed(5)
    before = torch.openreg.get_rng_state()
    on_device = torch.rand(5, device="openreg", generator=generator)
    on_cpu = torch.rand(5, generator=torch.Generator().manual_seed(5))
    assert torch.equal(on_device.cpu(), on_cpu)
    assert torch.equal(torch.openreg.get_rng_state(), before)


def test_default_generators_are_one_for_each_device() -> None:
    generators = torch.openreg.default_generators
    assert len(generators) == torch.openreg.device_count()
    assert [g.device for g in generators] == [
        torch.device("openreg", i) for i in range(2)
    ]
    assert generators[-1].device.index == 1
    with pytest.raises(IndexError):
        generators[2]


def test_checkpoint_repeats_dropout_in_backward() -> None:
    x = torch.ones(1000, device="openreg", requires_grad=True)
    y = torch.utils.checkpoint.checkpoint(
        lambda t: torch.dropout(t, 0.5, True), x, use_reentrant=False
    )
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("torch.manual_seed(42)", "torch.manual_seed(42)"),
        (
            "torch.manual_seed(1); torch.openreg.manual_seed(42)",
            "torch.manual_seed(42)",
        ),
        ("torch.openreg.manual_seed(42); torch.manual_seed(1)", "torch.manual_seed(1)"),
        (
            "torch.openreg.manual_seed(1); s = torch.manual_seed(42).get_state();"
            "torch.openreg.manual_seed_all(1); torch.openreg.set_rng_state(s);"
            "s.zero_()",
            "torch.manual_seed(42)",
        ),
    ],
)
def test_seeds_set_before_first_use_take_effect_in_order(
    output: Output, before: str, expected: str
) -> None:
    source = f"""
import torch
{before}
assert not torch.openreg.is_initialized()
numbers = torch.rand(4, device="openreg").tolist()
{expected}
print(numbers == torch.rand(4).tolist())
"""
    assert output(source) == "True"


def test_wrong_state_set_before_first_use_is_reported_once(output: Output) -> None:
    source = """
    import torch
    torch.openreg.set_rng_state(torch.zeros(3, dtype=torch.uint8))
    try:
        torch.ones(1, device="openreg")
    except (RuntimeError, TypeError) as error:
        print("refused")
    print(torch.ones(1, device="openreg").item())
    """
    assert output(source).split() == ["refused", "1.0"]
