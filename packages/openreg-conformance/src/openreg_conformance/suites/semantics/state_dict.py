# SPDX-License-Identifier: BSD-3-Clause
"""``state_dict`` and ``load_state_dict``: aliases, hooks, modes and refusals."""

import torch
from torch import nn

from openreg_conformance.checks.observing import Programs, refusal

_programs = Programs(__name__)
program, each, cases = _programs.program, _programs.each, _programs.cases


def linear(device: str) -> nn.Linear:
    return nn.Linear(3, 2).to(device)


@program
def state_dict_shares_storage_with_the_parameters(device):
    module = linear(device)
    return dict(module.named_parameters()), module.state_dict()


@program
def state_dict_keeps_variables_when_asked_to(device):
    module = linear(device)
    return dict(module.named_parameters()), module.state_dict(keep_vars=True)


@program
def loaded_state_is_copied_into_the_parameters(device):
    module = linear(device)
    parameters = list(module.parameters())
    loaded = module.load_state_dict({"weight": torch.ones(2, 3), "bias": torch.ones(2)})
    return str(loaded), parameters, module.weight is parameters[0]


@program
def assigned_state_replaces_the_parameters(device):
    module = linear(device)
    before = module.weight
    given = {
        "weight": torch.ones(2, 3, device=device),
        "bias": torch.ones(2).to(device),
    }
    module.load_state_dict(given, assign=True)
    return module.weight is before, dict(module.named_parameters()), given["weight"]


@program
def assigned_state_gives_meta_modules_memory(device):
    module = nn.Linear(3, 2, device="meta")
    given = {
        "weight": torch.ones(2, 3, device=device),
        "bias": torch.ones(2).to(device),
    }
    module.load_state_dict(given, assign=True)
    return dict(module.named_parameters())


@program
def copying_state_into_a_meta_module_warns(device):
    module = nn.Linear(3, 2, device="meta")
    module.load_state_dict(linear(device).state_dict())
    return [p.device.type == "meta" for p in module.parameters()]


@program
def hooks_of_state_dict_are_called_in_order(device):
    module, calls = nn.Sequential(linear(device)), []
    module.register_state_dict_pre_hook(lambda *_: calls.append("save pre"))
    module.register_state_dict_post_hook(
        lambda module, state, prefix, metadata: calls.append(f"save {sorted(state)}")
    )
    module.register_load_state_dict_pre_hook(
        lambda module, state, *_: calls.append(f"load pre {sorted(state)}")
    )
    module.register_load_state_dict_post_hook(
        lambda module, incompatible: calls.append(f"load {incompatible}")
    )
    module.load_state_dict(module.state_dict())
    return calls


@program
def load_pre_hook_may_rename_the_state(device):
    module = linear(device)

    def rename(module, state, prefix, *_):
        state[f"{prefix}weight"] = state.pop(f"{prefix}old")

    module.register_load_state_dict_pre_hook(rename)
    module.load_state_dict({"old": torch.ones(2, 3), "bias": torch.zeros(2)})
    return dict(module.named_parameters())


@program
def mismatched_state_is_refused(device):
    module = linear(device)
    state = {"weight": torch.ones(2, 4), "other": torch.ones(1)}
    return refusal(lambda: module.load_state_dict(state), "size mismatch for weight")


@program
def state_that_is_not_strict_reports_its_keys(device):
    module = linear(device)
    loaded = module.load_state_dict({"bias": torch.ones(2), "x": 1}, strict=False)
    return loaded.missing_keys, loaded.unexpected_keys, module.bias


@program
def state_of_another_dtype_is_converted(device):
    module = linear(device)
    state = {"weight": torch.full((2, 3), 0.1, dtype=torch.float64)}
    module.load_state_dict(state, strict=False)
    return module.weight


@program
def extra_state_is_saved_and_loaded(device):
    class WithExtra(nn.Linear):
        extra = None

        def get_extra_state(self):
            return {"step": self.bias.detach().sum()}

        def set_extra_state(self, state):
            self.extra = state

    module = WithExtra(3, 2).to(device)
    state = module.state_dict()
    module.load_state_dict(state)
    return state, module.extra


@program
def loading_state_raises_versions_once_each(device):
    module = nn.BatchNorm1d(2).to(device)
    state = {name: each.clone() for name, each in module.state_dict().items()}
    before = [each._version for each in module.state_dict().values()]
    module.load_state_dict(state)
    after = [each._version for each in module.state_dict().values()]
    return [b - a for a, b in zip(before, after, strict=True)]


@program
def loading_state_between_forward_and_backward_is_noticed(device):
    module = nn.Sequential(linear(device), nn.Linear(2, 1).to(device))
    state = {name: each.clone() for name, each in module.state_dict().items()}
    loss = module(torch.ones(1, 3, device=device)).sum()
    module.load_state_dict(state)
    return refusal(loss.backward, "modified by an inplace operation")


@program
def functional_call_uses_the_given_state(device):
    module = nn.Sequential(linear(device), nn.BatchNorm1d(2, device=device))
    state = {
        name: torch.full_like(each, 2.0) if each.is_floating_point() else each.clone()
        for name, each in module.state_dict().items()
    }
    x = torch.arange(6.0, device=device).view(2, 3)
    result = torch.func.functional_call(module, state, (x,))
    return result, state, module[1].running_mean, module[0].weight


@program
@each("tied", [True, False])
def functional_call_may_tie_weights(device, tied):
    module = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    module[1].weight = module[0].weight
    module.to(device)
    state = {"0.weight": torch.eye(2, device=device) * 3}
    x = torch.ones(1, 2, device=device)
    return torch.func.functional_call(module, state, (x,), tie_weights=tied)


@program
def stacked_module_state_serves_an_ensemble(device):
    modules = [linear(device) for _ in range(3)]
    parameters, buffers = torch.func.stack_module_state(modules)
    x = torch.arange(6.0, device=device).view(2, 3)

    def call(p, b):
        return torch.func.functional_call(modules[0], (p, b), (x,))

    return parameters, torch.vmap(call)(parameters, buffers)
