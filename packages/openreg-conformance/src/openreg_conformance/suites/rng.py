# SPDX-License-Identifier: BSD-3-Clause
"""Random numbers: seeds, generators, states, and what is drawn."""

import torch

from openreg_conformance.case import Suite

_suite = Suite(__name__)
case, cases = _suite.case, _suite.cases


def draws(device, generator=None):
    options = {"device": device, "generator": generator}
    return [
        torch.rand(9, **options),
        torch.randn(9, **options),
        torch.randint(100, (9,), **options),
        torch.randperm(9, **options),
        torch.empty(9, device=device).normal_(generator=generator),
        torch.empty(9, device=device).uniform_(generator=generator),
        torch.bernoulli(torch.full((40,), 0.5, device=device), generator=generator),
        torch.multinomial(torch.ones(9, device=device), 5, generator=generator),
        torch.empty(9, device=device).exponential_(generator=generator),
    ]


NAMES = (
    "rand randn randint randperm normal_ uniform_ bernoulli multinomial exponential_"
)


def same(ones, others):
    """Lists the names of unequal results."""
    return [
        name
        for name, one, other in zip(NAMES.split(), ones, others)
        if not torch.equal(one.cpu(), other.cpu())
    ]


@case("generator", subject="seeds")
def same_seed_same_numbers(device):
    """torch.manual_seed makes each operator draw the same numbers again."""
    torch.manual_seed(3)
    first = draws(device)
    torch.manual_seed(3)
    differ = same(first, draws(device))
    assert not differ, f"after the same seed {', '.join(differ)} drew other numbers"


@case("generator", subject="sequences")
def numbers_do_not_repeat(device):
    """Consecutive draws, and draws after different seeds, give different numbers."""
    torch.manual_seed(3)
    first, second = torch.rand(50, device=device), torch.rand(50, device=device)
    assert not first.equal(second), "two draws gave the same numbers"
    torch.manual_seed(4)
    assert not torch.rand(50, device=device).equal(first), "another seed, same numbers"


@case("generator", subject="generators that are given")
def given_generator_is_used(device):
    """An operator draws from the generator argument."""
    one = torch.Generator(device).manual_seed(5)
    assert one.device.type == device
    torch.manual_seed(0)
    first = draws(device, one)
    one.manual_seed(5)
    torch.manual_seed(1)
    differ = same(first, draws(device, one))
    assert not differ, f"{', '.join(differ)} did not draw from the generator"


@case("generator", subject="generators that are given")
def given_generator_leaves_the_default_alone(device):
    """Draws from a generator argument do not advance the default generator."""
    torch.manual_seed(2)
    expected = torch.rand(5, device=device)
    torch.manual_seed(2)
    draws(device, torch.Generator(device).manual_seed(5))
    assert torch.rand(5, device=device).equal(expected)


@case("generator", "accelerator", subject="the host's generator")
def host_generator_is_left_alone(device):
    """Draws on the device do not advance the host's default generator."""
    before = torch.get_rng_state()
    draws(device)
    assert torch.get_rng_state().equal(before)


@case("generator", subject="states")
def state_of_a_generator_is_restored(device):
    """get_state and set_state of a generator reproduce its numbers."""
    generator = torch.Generator(device).manual_seed(5)
    torch.rand(3, device=device, generator=generator)
    state = generator.get_state()
    assert state.device.type == "cpu" and state.dtype == torch.uint8
    first = draws(device, generator)
    generator.set_state(state)
    differ = same(first, draws(device, generator))
    assert not differ, f"after set_state {', '.join(differ)} drew other numbers"


@case("generator", "accelerator", subject="states of the module", users=0.5)
def state_of_the_device_is_restored(device):
    """get_rng_state and set_rng_state of the module reproduce numbers."""
    module = torch.get_device_module(device)
    state = module.get_rng_state()
    first = draws(device)
    module.set_rng_state(state)
    differ = same(first, draws(device))
    assert not differ, f"after set_rng_state {', '.join(differ)} drew other numbers"


@case("generator", "accelerator", subject="fork_rng", users=0.4)
def fork_rng_restores(device):
    """torch.random.fork_rng restores the device's generator."""
    torch.manual_seed(1)
    expected = torch.rand(3, device=device)
    torch.manual_seed(1)
    with torch.random.fork_rng(device_type=device):
        torch.manual_seed(9)
        draws(device)
    assert torch.rand(3, device=device).equal(expected)


@case("generator", subject="seeds of generators", users=0.3)
def generator_knows_its_seed(device):
    """initial_seed, seed and manual_seed of a generator agree."""
    generator = torch.Generator(device)
    assert generator.manual_seed(7) is generator
    assert generator.initial_seed() == 7
    assert generator.seed() == generator.initial_seed()


@case("generator", "accelerator", subject="generators of another device", users=0.2)
def generator_of_the_host_is_refused(device):
    """A device operator refuses a CPU generator."""
    try:
        torch.rand(2, device=device, generator=torch.Generator())
    except RuntimeError:
        return
    raise AssertionError("a generator of the host was taken")


@case("operators", subject="distributions")
def numbers_have_their_distributions(device):
    """Means, deviations and bounds of random numbers match the distributions."""
    torch.manual_seed(0)
    size = 20000
    x = torch.rand(size, device=device).cpu()
    assert 0 <= x.min() and x.max() < 1, "rand is not in [0, 1)"
    assert abs(x.mean() - 0.5) < 0.02 and abs(x.std() - 0.2887) < 0.02, "rand"
    x = torch.randn(size, device=device).cpu()
    assert abs(x.mean()) < 0.05 and abs(x.std() - 1) < 0.05, "randn"
    x = torch.randint(3, 7, (size,), device=device).cpu()
    assert sorted(set(x.tolist())) == [3, 4, 5, 6], "randint"
    x = torch.randperm(500, device=device).cpu()
    assert x.sort().values.equal(torch.arange(500)), "randperm"
    x = torch.bernoulli(torch.full((size,), 0.3, device=device)).cpu()
    assert abs(x.mean() - 0.3) < 0.03, "bernoulli"
    x = torch.empty(size, device=device).exponential_(2.0).cpu()
    assert x.min() >= 0 and abs(x.mean() - 0.5) < 0.03, "exponential_"
    weights = torch.tensor([0.0, 1.0, 3.0], device=device)
    x = torch.multinomial(weights, size, replacement=True).cpu()
    assert x.min() == 1 and abs(x.float().mean() - 1.75) < 0.03, "multinomial"


@case("operators", subject="dropout")
def dropout_masks_forward_and_backward_alike(device):
    """Dropout keeps the right share, scales it, and masks gradients equally."""
    torch.manual_seed(0)
    x = torch.ones(2000, device=device, requires_grad=True)
    y = torch.nn.functional.dropout(x, 0.25)
    y.sum().backward()
    kept = y.detach().cpu() != 0
    assert abs(kept.float().mean() - 0.75) < 0.06, "the share that is kept"
    assert (y.detach().cpu()[kept] - 1 / 0.75).abs().max() < 1e-5
    assert (x.grad.cpu() != 0).equal(kept), "forward and backward have other masks"
    assert torch.nn.functional.dropout(x, 0.25, training=False) is not None
