# SPDX-License-Identifier: BSD-3-Clause
"""``module.to(device)``: preserved objects and references."""

import copy
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize, prune

from openreg_conformance.checks.observing import Programs, refusal

_programs = Programs(__name__)
program, each, cases = _programs.program, _programs.each, _programs.cases


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))


def state(module: nn.Module) -> dict[str, torch.Tensor]:
    """Parameters, and copies of the buffers: a move makes new ones on any device."""
    buffers = {name: each.clone() for name, each in module.named_buffers()}
    return dict(module.named_parameters()) | buffers


def values(module: nn.Module) -> dict[str, torch.Tensor]:
    """Copies, where the tensors are new ones."""
    return {name: each.detach().clone() for name, each in state(module).items()}


def batch(device: str) -> torch.Tensor:
    return torch.linspace(-1, 1, 15, device=device).view(5, 3)


@contextmanager
def swapping() -> Iterator[None]:
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        yield
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)


@contextmanager
def overwriting() -> Iterator[None]:
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    try:
        yield
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(False)


@program
def to_keeps_the_parameter_objects(device):
    module = network()
    before = list(module.parameters())
    returned = module.to(device)
    same = [a is b for a, b in zip(before, module.parameters(), strict=True)]
    return returned is module, same, state(module)


@program
def to_moves_gradients_within_their_objects(device):
    module = network()
    module(batch("cpu")).sum().backward()
    before = [p.grad for p in module.parameters()]
    module.to(device)
    after = [p.grad for p in module.parameters()]
    return [a is b for a, b in zip(before, after, strict=True)], after


@program
def tied_weights_stay_tied(device):
    encoder, decoder = nn.Linear(3, 4, bias=False), nn.Linear(3, 4, bias=False)
    decoder.weight = encoder.weight
    module = nn.ModuleList([encoder, decoder]).to(device)
    (encoder(batch(device)).sum() + 2 * decoder(batch(device)).sum()).backward()
    return (
        encoder.weight is decoder.weight,
        [name for name, _ in module.named_parameters()],
        list(module.named_parameters(remove_duplicate=False)),
        module.state_dict(),
        encoder.weight.grad,
    )


@program
def weight_tied_to_an_embedding_trains(device):
    embedding, head = nn.Embedding(5, 3), nn.Linear(3, 5, bias=False)
    head.weight = embedding.weight
    module = nn.Sequential(embedding, head).to(device)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
    indices = torch.tensor([0, 4, 4, 2], device=device)
    for _ in range(2):
        optimizer.zero_grad()
        nn.functional.cross_entropy(module(indices), indices).backward()
        optimizer.step()
    return state(module), head.weight is embedding.weight


@program
def optimizer_that_was_made_before_to_trains_the_module(device):
    module = network()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    module.to(device)
    module(batch(device)).square().sum().backward()
    optimizer.step()
    groups = optimizer.param_groups[0]["params"]
    return state(module), [
        a is b for a, b in zip(groups, module.parameters(), strict=True)
    ]


@program
def weak_reference_to_a_parameter_outlives_to(device):
    module = network()
    reference = weakref.ref(module[0].weight)
    module.to(device)
    return reference() is module[0].weight


@program
def attributes_of_a_parameter_outlive_to(device):
    module = network()
    module[0].weight.is_expert = True
    module.to(device)
    return module[0].weight.is_expert, module[0].weight.__dict__


@program
def hooks_of_parameters_outlive_to(device):
    module, calls = nn.Linear(3, 2), []
    module.weight.register_hook(lambda grad: calls.append(("hook", grad.clone())))
    module.weight.register_post_accumulate_grad_hook(
        lambda p: calls.append(("accumulated", p.grad.clone()))
    )
    module.to(device)
    module(batch(device)).sum().backward()
    return calls


@program
def gradients_accumulate_on_the_new_device_after_to(device):
    module = nn.Linear(3, 2)
    module(batch("cpu")).sum().backward()
    module.to(device)
    module(batch(device)).sum().backward()
    return state(module), [p.grad for p in module.parameters()]


@program
def module_hooks_fire_in_order_after_to(device):
    module, calls = network(), []
    module.register_forward_pre_hook(lambda *_: calls.append("forward pre"))
    module.register_forward_hook(lambda *_: calls.append("forward"))
    module.register_full_backward_pre_hook(lambda *_: calls.append("backward pre"))
    module[0].register_full_backward_hook(lambda *_: calls.append("backward"))
    module.to(device)
    module(batch(device).requires_grad_()).sum().backward()
    return calls


@program
def buffers_that_are_not_persistent_move(device):
    module = nn.Module()
    module.register_buffer("shown", torch.arange(3))
    module.register_buffer("hidden", torch.arange(2), persistent=False)
    module.register_buffer("missing", None)
    module.both = nn.Buffer(torch.ones(1))
    module.to(device)
    return dict(module.named_buffers()), list(module.state_dict()), module.missing


@program
def buffer_of_integers_keeps_its_dtype_when_floats_are_converted(device):
    module = network().to(device, torch.float64)
    return state(module)


@program
def to_channels_last_keeps_parameter_objects(device):
    module = nn.Conv2d(2, 3, 2)
    weight = module.weight
    module.to(device).to(memory_format=torch.channels_last)
    return module.weight is weight, state(module)


@program
def conversions_of_dtype_keep_parameter_objects(device):
    module = network().to(device)
    before = list(module.parameters())
    facts = []
    for convert in (module.half, module.bfloat16, module.double, module.float):
        convert()
        facts.append([a is b for a, b in zip(before, module.parameters(), strict=True)])
    return facts, state(module)


@program
def round_trip_to_the_host_keeps_parameter_objects(device):
    module = network()
    before = list(module.parameters())
    module.to(device).cpu().to(device)
    return state(module), [
        a is b for a, b in zip(before, module.parameters(), strict=True)
    ]


@program
def to_empty_gives_meta_modules_memory(device):
    with torch.device("meta"):
        module = network()
    before = list(module.parameters())
    module.to_empty(device=device)
    for each in [*module.parameters(), *module.buffers()]:
        nn.init.zeros_(each)
    return state(module), [
        a is b for a, b in zip(before, module.parameters(), strict=True)
    ]


@program
def to_refuses_meta_modules(device):
    module = nn.Linear(2, 2, device="meta")
    return refusal(lambda: module.to(device), "Cannot copy out of meta tensor")


@program
def lazy_module_is_initialized_where_it_was_moved(device):
    module = nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d()).to(device)
    kinds = [type(p).__name__ for p in module.parameters()]
    weight = module[0].weight
    with torch.no_grad():
        module(batch(device))
        for p in module.parameters():
            p.fill_(0.5)
    return kinds, weight is module[0].weight, type(module[0]).__name__, state(module)


@program
def parametrization_moves_with_its_module(device):
    class Symmetric(nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).mT

        def right_inverse(self, x):
            return x.triu()

    module = nn.Linear(3, 3)
    parametrize.register_parametrization(module, "weight", Symmetric())
    original = module.parametrizations.weight.original
    module.to(device)
    module(batch(device)).sum().backward()
    with parametrize.cached():
        cached = module.weight is module.weight
    same = module.parametrizations.weight.original is original
    gradient = original.grad
    parametrize.remove_parametrizations(module, "weight")
    return same, cached, gradient, state(module)


@program
@each("kind", ["weight_norm", "spectral_norm", "orthogonal"])
def norms_of_weights_move_with_their_module(device, kind):
    module = getattr(parametrizations, kind)(nn.Linear(3, 3)).to(device)
    for _ in range(2):
        module(batch(device)).sum().backward()
    return state(module), {n: p.grad for n, p in module.named_parameters()}


@program
def weight_norm_of_the_old_kind_warns_and_moves(device):
    module = nn.utils.weight_norm(nn.Linear(3, 2)).to(device)
    module(batch(device)).sum().backward()
    weight = module.weight.detach().clone()
    nn.utils.remove_weight_norm(module)
    return weight, state(module), [p.grad for p in module.parameters()]


@program
def rnn_keeps_its_flat_weights_after_to(device):
    module = nn.LSTM(3, 2, num_layers=2, bidirectional=True)
    before = list(module.parameters())
    module.to(device)
    flat = module._flat_weights
    module.flatten_parameters()
    output, (hidden, cell) = module(batch(device)[:, None])
    (output.sum() + hidden.sum() + cell.sum()).backward()
    return (
        [a is b for a, b in zip(before, module.parameters(), strict=True)],
        [a is b for a, b in zip(flat, module.parameters(), strict=True)],
        [r() is p for r, p in zip(module._flat_weight_refs, before, strict=True)],
        # The device has separate cell kernels, as CUDA has, with different rounding.
        output.detach().mul(1e5).round(),
        [p.grad.mul(1e4).round() for p in before],
    )


@program
def parameter_list_and_dict_keep_their_objects(device):
    module = nn.Module()
    module.many = nn.ParameterList([torch.ones(2), nn.Parameter(torch.zeros(1)), "x"])
    module.named = nn.ParameterDict({"a": torch.arange(2.0), "b": torch.ones(1)})
    before = list(module.parameters())
    module.to(device)
    same = [a is b for a, b in zip(before, module.parameters(), strict=True)]
    return same, state(module), [str(each)[:1] for each in module.many]


@program
def deepcopy_keeps_ties_and_separates_from_the_original(device):
    first = nn.Linear(3, 3, bias=False)
    module = nn.Sequential(first, nn.Linear(3, 3, bias=False))
    module[1].weight = first.weight
    module.to(device)
    module(batch(device)).sum().backward()
    copied = copy.deepcopy(module)
    with torch.no_grad():
        copied[0].weight.zero_()
    tied = copied[0].weight is copied[1].weight
    return tied, state(copied), copied[0].weight.grad, state(module)


@program
def pruned_module_moves(device):
    module = nn.Linear(3, 2)
    prune.l1_unstructured(module, "weight", amount=2)
    module.to(device)
    module(batch(device)).sum().backward()
    gradient = module.weight_orig.grad
    prune.remove(module, "weight")
    return gradient, state(module)


@program
def vector_of_parameters_is_written_back_to_the_same_objects(device):
    module = network().to(device)
    before = list(module.parameters())
    vector = nn.utils.parameters_to_vector(before)
    nn.utils.vector_to_parameters(vector * 2, before)
    same = [a is b for a, b in zip(before, module.parameters(), strict=True)]
    return vector.detach(), same, state(module)


@program
def swap_mode_keeps_the_parameter_objects(device):
    with swapping():
        module = network()
        before = list(module.parameters())
        module.to(device)
        same = [a is b for a, b in zip(before, module.parameters(), strict=True)]
        module(batch(device)).sum().backward()
        return same, values(module), [p.grad for p in module.parameters()]


@program
def swap_mode_keeps_ties_and_optimizers(device):
    with swapping():
        module = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
        module[1].weight = module[0].weight
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        module.to(device)
        module(batch(device)).sum().backward()
        optimizer.step()
        return module[1].weight is module[0].weight, values(module)


@program
def swap_mode_refuses_parameters_that_a_graph_holds(device):
    with swapping():
        module = nn.Linear(3, 2)
        loss = module(batch("cpu").requires_grad_()).sum()  # saves the weight
        message = refusal(lambda: module.to(device), "Couldn't swap Linear.weight")
        return message, loss.dim()


@program
def overwrite_mode_makes_new_parameter_objects(device):
    with overwriting():
        module = network()
        before = list(module.parameters())
        module.to(device)
        same = [a is b for a, b in zip(before, module.parameters(), strict=True)]
        return same, values(module)
