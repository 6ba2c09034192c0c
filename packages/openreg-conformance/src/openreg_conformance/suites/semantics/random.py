# SPDX-License-Identifier: BSD-3-Clause
"""Random numbers: seeds, states of generators, and who draws from which generator."""

import torch
import torch.utils.checkpoint
from torch import nn

from openreg_conformance.checks.observing import Programs, refusal

_programs = Programs(__name__, draws=True)
program, each, cases = _programs.program, _programs.each, _programs.cases


DRAWS = {
    "rand": lambda d: torch.rand(3, device=d),
    "randn": lambda d: torch.randn(3, device=d),
    "many randn": lambda d: torch.randn(40, device=d),
    "randint": lambda d: torch.randint(10, (3,), device=d),
    "randperm": lambda d: torch.randperm(7, device=d),
    "rand_like": lambda d: torch.rand_like(torch.ones(2, 2, device=d)),
    "normal": lambda d: torch.normal(torch.arange(3.0, device=d), 2.0),
    "bernoulli": lambda d: torch.bernoulli(torch.full((5,), 0.4, device=d)),
    "multinomial": lambda d: torch.multinomial(torch.ones(5, device=d), 3),
    "multinomial with replacement": lambda d: torch.multinomial(
        torch.arange(1.0, 5.0, device=d), 6, replacement=True
    ),
    "poisson": lambda d: torch.poisson(torch.full((4,), 3.0, device=d)),
    "binomial": lambda d: torch.binomial(
        torch.full((4,), 9.0, device=d), torch.full((4,), 0.3, device=d)
    ),
    "exponential_": lambda d: torch.ones(3, device=d).exponential_(),
    "geometric_": lambda d: torch.ones(3, device=d).geometric_(0.3),
    "cauchy_": lambda d: torch.ones(3, device=d).cauchy_(),
    "log_normal_": lambda d: torch.ones(3, device=d).log_normal_(),
    "random_": lambda d: torch.ones(3, device=d).random_(),
    "gamma": lambda d: torch._standard_gamma(torch.full((3,), 2.0, device=d)),
    "dirichlet": lambda d: torch._sample_dirichlet(torch.ones(3, device=d)),
    "dropout": lambda d: nn.functional.dropout(torch.ones(9, device=d)),
    "dropout2d": lambda d: nn.functional.dropout2d(torch.ones(1, 6, 2, 2, device=d)),
    "alpha_dropout": lambda d: nn.functional.alpha_dropout(
        torch.ones(9, device=d), 0.5, True
    ),
    "rrelu": lambda d: nn.functional.rrelu(-torch.ones(5, device=d), training=True),
    "gumbel_softmax": lambda d: nn.functional.gumbel_softmax(torch.ones(4, device=d)),
    "xavier": lambda d: nn.init.xavier_uniform_(torch.empty(2, 3, device=d)),
    "orthogonal": lambda d: nn.init.orthogonal_(torch.empty(3, 3, device=d)),
    "trunc_normal": lambda d: nn.init.trunc_normal_(torch.empty(4, device=d)),
    "layer": lambda d: nn.Linear(3, 2, device=d).weight.detach(),
    "distribution": lambda d: torch.distributions.Beta(
        torch.ones(2, device=d), torch.ones(2, device=d)
    ).sample(),
}


def default_generator(device: str) -> torch.Generator:
    return (
        torch.default_generator
        if device == "cpu"
        else getattr(torch, device).default_generators[0]
    )


@program
@each("draw", DRAWS)
def same_seed_draws_the_same_numbers(device, draw):
    torch.manual_seed(7)
    first = DRAWS[draw](device)
    second = DRAWS[draw](device)
    torch.manual_seed(7)
    return first, second, DRAWS[draw](device)


@program
def state_of_the_generator_repeats_its_numbers(device):
    generator = default_generator(device)
    generator.manual_seed(3)
    torch.rand(2, device=device)
    state = generator.get_state()
    first = torch.randn(5, device=device)
    generator.set_state(state)
    return first, torch.randn(5, device=device)


@program
def given_generator_is_the_only_one_drawn_from(device):
    generator = torch.Generator(device).manual_seed(5)
    before = default_generator(device).get_state()
    drawn = [
        torch.rand(3, generator=generator, device=device),
        torch.randperm(5, generator=generator, device=device),
        torch.empty(3, device=device).normal_(generator=generator),
        torch.multinomial(torch.ones(4, device=device), 2, generator=generator),
        torch.bernoulli(torch.full((4,), 0.5, device=device), generator=generator),
    ]
    untouched = torch.equal(before, default_generator(device).get_state())
    return drawn, untouched, generator.initial_seed()


@program
def clone_of_a_generator_goes_its_own_way(device):
    generator = torch.Generator(device).manual_seed(5)
    torch.rand(2, generator=generator, device=device)
    clone = generator.clone_state()
    first = torch.rand(2, generator=generator, device=device)
    return first, torch.rand(2, generator=clone, device=device), clone is generator


@program
def graph_safe_state_of_a_generator_is_a_generator(device):
    generator = torch.Generator(device).manual_seed(5)
    return str(generator.device), generator.seed() == generator.initial_seed()


@program
def seeds_of_every_size_are_taken(device):
    generator = torch.Generator(device)
    seeds = []
    for seed in (0, 1, 2**63 - 1, -1, 2**64 - 1):
        generator.manual_seed(seed)
        seeds.append(generator.initial_seed())
    return seeds, refusal(lambda: generator.manual_seed(2**64), "Overflow")


@program
def forked_generator_is_restored(device):
    torch.manual_seed(1)
    devices = [] if device == "cpu" else [0]
    with torch.random.fork_rng(devices, device_type=device):
        inside = torch.rand(3, device=device)
        torch.manual_seed(99)
        torch.rand(3, device=device)
    return inside, torch.rand(3, device=device)


@program
def reset_in_a_draw_of_another_dtype_agrees(device):
    torch.manual_seed(2)
    kinds = (torch.float64, torch.float16, torch.bfloat16, torch.float32)
    drawn = [torch.rand(3, dtype=kind, device=device) for kind in kinds]
    drawn += [torch.randn(3, dtype=kind, device=device) for kind in kinds]
    return drawn, torch.randn(3, dtype=torch.complex64, device=device)


@program
def half_a_normal_number_is_kept_over_calls(device):
    torch.manual_seed(2)
    one_by_one = [torch.randn(1, device=device) for _ in range(5)]
    default_generator(device).manual_seed(2)
    return one_by_one, torch.randn(1, device=device), torch.randn(17, device=device)


@program
@each("preserve", [True, False])
@each("reentrant", [True, False])
def dropout_in_a_checkpoint(device, preserve, reentrant):
    x = torch.ones(16, device=device, requires_grad=True)
    torch.manual_seed(4)
    y = torch.utils.checkpoint.checkpoint(
        nn.functional.dropout,
        x,
        use_reentrant=reentrant,
        preserve_rng_state=preserve,
    )
    between = torch.rand(2, device=device)
    y.sum().backward()
    kept = torch.equal((x.grad != 0), (y.detach() != 0))
    return y.detach(), between, kept or not preserve, torch.rand(2, device=device)


@program
def dropout_masks_forward_and_backward_alike(device):
    x = torch.ones(32, device=device, requires_grad=True)
    torch.manual_seed(4)
    y = nn.functional.dropout(x, 0.5)
    y.sum().backward()
    return y.detach(), x.grad


@program
def lstm_with_dropout_draws_the_same(device):
    module = nn.LSTM(3, 4, num_layers=2, dropout=0.5).to(device)
    torch.manual_seed(4)
    output, _ = module(torch.ones(2, 1, 3, device=device))
    # The device has separate cell kernels, as CUDA has, with different rounding.
    return output.detach().mul(1e5).round()


@program
def attention_with_dropout_draws_the_same(device):
    q = torch.linspace(-1, 1, 24, device=device).view(1, 1, 6, 4)
    torch.manual_seed(4)
    return nn.functional.scaled_dot_product_attention(q, q, q, dropout_p=0.5)


@program
def data_loader_shuffles_by_the_hosts_generator(device):
    x = torch.arange(8, device=device)
    data = torch.utils.data.TensorDataset(x)
    loader = torch.utils.data.DataLoader(
        data, 3, shuffle=True, generator=torch.Generator().manual_seed(0)
    )
    return [batch for (batch,) in loader]


@program
def random_split_and_samplers_agree(device):
    torch.manual_seed(3)
    generator = torch.Generator().manual_seed(1)
    parts = torch.utils.data.random_split(range(9), [4, 5], generator=generator)
    weights = torch.arange(1.0, 5.0, device=device)
    sampler = torch.utils.data.WeightedRandomSampler(
        weights.cpu(), 5, generator=generator
    )
    return [list(part) for part in parts], list(sampler)


@program
def bad_parameters_of_distributions_are_refused(device):
    x = torch.ones(3, device=device)
    return [
        refusal(lambda: x.normal_(0, -1), "std"),
        refusal(lambda: x.uniform_(2, 1), "uniform_ expects"),
        refusal(lambda: x.exponential_(0), "exponential_ expects lambda > 0"),
        refusal(lambda: x.geometric_(2), "geometric_ expects p"),
        refusal(lambda: x.random_(3, 3), "random_ expects 'from'"),
        refusal(lambda: x.bernoulli_(2.0), "bernoulli_ expects p"),
        refusal(lambda: torch.multinomial(x, 5), "cannot sample n_sample"),
        refusal(lambda: nn.functional.dropout(x, 1.5), "dropout probability"),
    ], x
