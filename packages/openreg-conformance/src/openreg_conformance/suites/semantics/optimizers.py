# SPDX-License-Identifier: BSD-3-Clause
"""Every optimizer: values, versions, the place of its state, and what it refuses."""

import copy
import inspect
from typing import Any

import torch
from torch import nn, optim
from torch.utils._pytree import tree_map_only

from openreg_conformance.checks.observing import Host, Programs, refusal

_programs = Programs(__name__)
program, each, cases = _programs.program, _programs.each, _programs.cases


SETTINGS: dict[str, dict[str, Any]] = {
    "ASGD": {"lr": 0.1},
    "Adadelta": {"lr": 0.5, "weight_decay": 0.01},
    "Adafactor": {"lr": 0.1},
    "Adagrad": {"lr": 0.1, "lr_decay": 0.1},
    "Adam": {"lr": 0.1, "amsgrad": True, "weight_decay": 0.01},
    "AdamW": {"lr": 0.1},
    "Adamax": {"lr": 0.1},
    "Muon": {"lr": 0.1},
    "NAdam": {"lr": 0.1, "decoupled_weight_decay": True, "weight_decay": 0.1},
    "RAdam": {"lr": 0.1},
    "RMSprop": {"lr": 0.1, "momentum": 0.9, "centered": True},
    "Rprop": {"lr": 0.1},
    "SGD": {"lr": 0.1, "momentum": 0.9, "nesterov": True},
}


FUSED = ["Adagrad", "Adam", "AdamW", "SGD"]


def _paths() -> list[tuple[str, dict[str, Any]]]:
    paths: list[tuple[str, dict[str, Any]]] = []
    for name in SETTINGS:
        known = inspect.signature(getattr(optim, name)).parameters
        if "foreach" not in known:
            paths.append((name, {}))
            continue
        paths += [(name, {"foreach": True}), (name, {"foreach": False})]
        paths += [(name, {"maximize": True, "foreach": True})]
        if name in FUSED:
            paths.append((name, {"fused": True}))
    return paths


paths = each(("name", "path"), _paths())


def make(name: str, device: str, **path: Any) -> tuple[list[nn.Parameter], Any]:
    parameters = [
        nn.Parameter(torch.linspace(-1, 1, 6).view(2, 3).to(device)),
        nn.Parameter(torch.full((3, 2), 0.5).to(device)),
    ]
    optimizer = getattr(optim, name)(parameters, **SETTINGS[name] | path)
    return parameters, optimizer


def loss_of(parameters: list[nn.Parameter]) -> torch.Tensor:
    first, second = parameters
    return (first @ second).square().sum() + (first * first.exp()).sum()


def state_of(optimizer: optim.Optimizer, loaded: bool = False) -> Any:
    """The optimizer's state, with what PyTorch keeps on the host marked.

    A step count is there unless the kernel is fused, so that reading it does not wait
    for the device. NAdam has another number there until a state is loaded.
    """
    state = optimizer.state_dict()["state"]
    if loaded:  # maybe from elsewhere, in new tensors
        state = tree_map_only(torch.Tensor, torch.clone, state)
    if isinstance(optimizer, optim.ASGD) or optimizer.param_groups[0].get("fused"):
        return state
    hosted = ("step",) if loaded else ("step", "mu_product")
    for each in state.values():
        for key in hosted:
            if isinstance(each.get(key), torch.Tensor):
                each[key] = Host(each[key])
    return state


def train(parameters: list[nn.Parameter], optimizer: Any, steps: int = 3) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(parameters).backward()
        optimizer.step()


@program
@paths
def steps_give_the_same_parameters_and_state(device, name, path):
    parameters, optimizer = make(name, device, **path)
    train(parameters, optimizer)
    return parameters, [p.grad for p in parameters], state_of(optimizer)


@program
@paths
def step_between_forward_and_backward_is_noticed(device, name, path):
    parameters, optimizer = make(name, device, **path)
    train(parameters, optimizer, 1)
    loss = loss_of(parameters)
    optimizer.step()
    if "fused" not in path:
        return refusal(loss.backward, "modified by an inplace operation")
    # PyTorch's fused operators do not increase versions on any device, because they
    # return nothing (gen_inplace_or_view_type.py). So the gradients belong to the new
    # parameters.
    loss.backward()
    return [p.grad for p in parameters]


@program
@paths
def state_dict_carries_on_in_another_optimizer(device, name, path):
    parameters, optimizer = make(name, device, **path)
    train(parameters, optimizer, 2)
    others, other = make(name, device, **path)
    with torch.no_grad():
        for mine, theirs in zip(parameters, others, strict=True):
            theirs.copy_(mine)
    other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    train(parameters, optimizer, 1)
    train(others, other, 1)
    return (
        others,
        state_of(other, loaded=True),
        [torch.equal(a, b) for a, b in zip(parameters, others, strict=True)],
    )


@program
@each("name", SETTINGS)
def foreach_is_what_an_optimizer_does_without_options(device, name):
    # As on CUDA, _default_to_fused_or_foreach in torch/optim/optimizer.py; on the CPU
    # it is a loop over the parameters, with other rounding. Adafactor always loops.
    loops = name in ("Adafactor", "Muon")
    path = {"foreach": True} if device == "cpu" and not loops else {}
    parameters, optimizer = make(name, device, **path)
    train(parameters, optimizer)
    return parameters


@program
def lbfgs_calls_its_closure_as_often(device):
    parameters, _ = make("SGD", device)
    optimizer = optim.LBFGS(parameters, max_iter=5, line_search_fn="strong_wolfe")
    losses = []

    def closure():
        optimizer.zero_grad()
        loss = loss_of(parameters)
        loss.backward()
        losses.append(loss.item())
        return loss

    returned = optimizer.step(closure)
    return returned.detach(), losses, parameters, optimizer.state_dict()["state"]


@program
def sparse_adam_updates_the_rows_of_the_gradient(device):
    embedding = nn.Embedding(5, 2, sparse=True).to(device)
    optimizer = optim.SparseAdam(embedding.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        embedding(torch.tensor([1, 3, 1], device=device)).sum().backward()
        optimizer.step()
    return embedding.weight, embedding.weight.grad, optimizer.state_dict()["state"]


@program
def sparse_gradients_are_refused_by_dense_optimizers(device):
    embedding = nn.Embedding(5, 2, sparse=True).to(device)
    embedding(torch.tensor([1], device=device)).sum().backward()
    return [
        refusal(
            getattr(optim, name)(embedding.parameters(), lr=0.1, foreach=True).step,
            "sparse",
        )
        for name in ("Adam", "RMSprop", "NAdam")
    ]


@program
@each("to_none", [True, False])
def zero_grad_keeps_or_drops_the_gradient(device, to_none):
    parameters, optimizer = make("SGD", device)
    loss_of(parameters).backward()
    before = [p.grad for p in parameters]
    optimizer.zero_grad(set_to_none=to_none)
    return before, [p.grad for p in parameters]


@program
def state_is_moved_to_the_device_of_the_parameters(device):
    parameters, optimizer = make("Adam", "cpu")
    train(parameters, optimizer, 1)
    state = copy.deepcopy(optimizer.state_dict())
    moved, other = make("Adam", device)
    other.load_state_dict(state)
    train(moved, other, 1)
    return moved, state_of(other, loaded=True)


@program
def state_is_converted_to_the_dtype_of_the_parameters(device):
    parameters, optimizer = make("Adam", device)
    train(parameters, optimizer, 1)
    halves = [nn.Parameter(p.detach().half()) for p in parameters]
    other = optim.Adam(halves, lr=0.1, amsgrad=True)
    other.load_state_dict(optimizer.state_dict())
    return state_of(other, loaded=True)


@program
def hooks_of_optimizers_are_called_in_order(device):
    parameters, optimizer = make("SGD", device)
    calls = []
    optimizer.register_step_pre_hook(lambda *_: calls.append("step pre"))
    optimizer.register_step_post_hook(lambda *_: calls.append("step"))
    optimizer.register_state_dict_pre_hook(lambda *_: calls.append("save pre"))
    optimizer.register_state_dict_post_hook(lambda *_: calls.append("save"))
    optimizer.register_load_state_dict_pre_hook(lambda *_: calls.append("load pre"))
    optimizer.register_load_state_dict_post_hook(lambda *_: calls.append("load"))
    train(parameters, optimizer, 1)
    optimizer.load_state_dict(optimizer.state_dict())
    return calls


@program
def optimizer_may_step_in_the_backward_pass(device):
    parameters, _ = make("SGD", device)
    optimizers = {p: optim.SGD([p], lr=0.1, foreach=False) for p in parameters}
    calls = []

    def step(p):
        optimizers[p].step()
        optimizers[p].zero_grad()
        calls.append(tuple(p.shape))

    for p in parameters:
        p.register_post_accumulate_grad_hook(step)
    first, second = parameters
    (first.sum() + second.sum()).backward()
    return parameters, sorted(calls), [p.grad for p in parameters]


SCHEDULES = {
    "StepLR": {"step_size": 2},
    "MultiStepLR": {"milestones": [1, 3]},
    "ExponentialLR": {"gamma": 0.5},
    "CosineAnnealingLR": {"T_max": 4},
    "CosineAnnealingWarmRestarts": {"T_0": 2},
    "OneCycleLR": {"max_lr": 0.5, "total_steps": 10},
    "CyclicLR": {"base_lr": 0.01, "max_lr": 0.1},
    "LinearLR": {},
    "PolynomialLR": {},
}


@program
@each("schedule", SCHEDULES)
@each("tensor", [False, True])
def scheduled_rates_agree(device, schedule, tensor):
    parameters, _ = make("SGD", device)
    rate = torch.tensor(0.1, dtype=torch.float64) if tensor else 0.1
    optimizer = optim.SGD(parameters, lr=rate, momentum=0.9, foreach=False)
    scheduler = getattr(optim.lr_scheduler, schedule)(optimizer, **SCHEDULES[schedule])
    rates = []
    for _ in range(4):
        train(parameters, optimizer, 1)
        scheduler.step()
        rates.append(float(optimizer.param_groups[0]["lr"]))
    return rates, parameters


@program
def plateau_of_a_loss_on_the_device_lowers_the_rate(device):
    _, optimizer = make("SGD", device)
    scheduler = optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    rates = []
    for loss in (1.0, 2.0, 3.0):
        optimizer.step()
        scheduler.step(torch.tensor(loss, device=device))
        rates.append(optimizer.param_groups[0]["lr"])
    return rates, scheduler.best


@program
def rate_as_a_tensor_is_refused_by_foreach(device):
    return refusal(
        lambda: make("Adam", device, lr=torch.tensor(0.1), foreach=True),
        "lr as a Tensor is not supported",
    )


@program
def averaged_model_follows_its_model(device):
    module = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2, device=device)).to(device)
    averaged = optim.swa_utils.AveragedModel(
        module,
        multi_avg_fn=optim.swa_utils.get_ema_multi_avg_fn(0.5),
        use_buffers=True,
    )
    for _ in range(3):
        with torch.no_grad():
            for p in module.parameters():
                p.add_(1)
        averaged.update_parameters(module)
    buffers = dict(averaged.named_buffers())
    buffers["n_averaged"] = Host(buffers["n_averaged"])
    return dict(averaged.named_parameters()), buffers


@program
def parameter_groups_are_checked(device):
    p = nn.Parameter(torch.ones(2, device=device))
    optimizer = optim.SGD([p], lr=0.1)
    optimizer.add_param_group({"params": [nn.Parameter(p.detach() * 2)], "lr": 0.5})
    return [
        len(optimizer.param_groups),
        refusal(lambda: optimizer.add_param_group({"params": [p]}), "more than one"),
        refusal(lambda: optim.SGD([p * 2], lr=0.1), "non-leaf"),
        refusal(lambda: optim.SGD([p], lr=-1.0), "Invalid learning rate"),
    ]
