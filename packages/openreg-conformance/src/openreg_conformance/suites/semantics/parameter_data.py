# SPDX-License-Identifier: BSD-3-Clause
"""``p.data = ...``, storages of parameters, and ``swap_tensors``."""

import torch
from torch import nn

from openreg_conformance.checks.observing import Host, Programs, refusal

_programs = Programs(__name__)
program, each, cases = _programs.program, _programs.each, _programs.cases


def batch(device: str) -> torch.Tensor:
    return torch.linspace(-1, 1, 15, device=device).view(5, 3)


@program
def assigned_data_keeps_the_parameter_and_its_version(device):
    p = nn.Parameter(torch.ones(3))
    with torch.no_grad():
        p.mul_(2)
    identity, version = id(p), p._version
    p.data = torch.arange(3.0).to(device)
    (p * p).sum().backward()
    return id(p) == identity, p._version == version, p, p.grad


@program
def assigned_data_of_another_dtype_and_shape_is_taken(device):
    p = nn.Parameter(torch.ones(3))
    p.data = torch.ones(2, 2, dtype=torch.float64).to(device)
    p.sum().backward()
    return p, p.grad


@program
def assigned_data_shares_storage(device):
    x = torch.arange(4.0, device=device)
    p = nn.Parameter(torch.empty(0))
    p.data = x[1:]
    with torch.no_grad():
        p.add_(1)
    return x, p


@program
def assigned_data_of_another_layout_is_refused(device):
    p = nn.Parameter(torch.ones(3, device=device))

    def assign():
        p.data = torch.ones(3, device=device).to_sparse()

    return refusal(assign, "incompatible tensor type")


@program
def flat_parameter_is_swapped_into_the_modules(device):
    """As in fully sharded training: views of one flat tensor become the data."""
    module = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
    parameters = list(module.parameters())
    flat = torch.cat([p.detach().flatten() for p in parameters]).to(device)
    gradient = torch.zeros_like(flat)
    pieces = zip(
        parameters,
        flat.split([p.numel() for p in parameters]),
        gradient.split([p.numel() for p in parameters]),
        strict=True,
    )
    for p, data, grad in pieces:
        p.data = data.view_as(p)
        p.grad = grad.view_as(p)
    module(batch(device)).sum().backward()
    with torch.no_grad():
        flat.sub_(gradient)
    return flat, gradient, parameters, [p.grad for p in parameters]


@program
def storage_of_a_parameter_is_freed_and_filled_again(device):
    """As in fully sharded training between forward and backward."""
    p = nn.Parameter(torch.arange(4.0).to(device))
    saved = p.detach().clone()
    loss = (p * p).sum()
    nbytes = p.untyped_storage().nbytes()
    p.untyped_storage().resize_(0)
    freed = p.untyped_storage().nbytes()
    p.untyped_storage().resize_(nbytes)
    with torch.autograd._unsafe_preserve_version_counter(p):
        p.detach().copy_(saved)
    loss.backward()
    return freed, p, p.grad


@program
def swapped_tensors_exchange_all_but_their_identity(device):
    a = torch.ones(2, device=device, requires_grad=True)
    b = torch.zeros(3, dtype=torch.float64, device=device)
    a.name_of_mine, identity = "a", (id(a), id(b))
    torch.utils.swap_tensors(a, b)
    return (id(a), id(b)) == identity, a, b, b.name_of_mine, hasattr(a, "name_of_mine")


@program
def tensor_on_the_host_swaps_with_one_on_the_device(device):
    a, b = torch.arange(2.0), torch.arange(3.0, device=device)
    torch.utils.swap_tensors(a, b)
    return a, Host(b)
