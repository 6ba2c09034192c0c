# SPDX-License-Identifier: BSD-3-Clause
"""Clipping of gradients and ``torch.amp.GradScaler``."""

import torch
from torch import nn
from torch.nn.utils import (
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)

from openreg_conformance.checks.observing import Programs, refusal

_programs = Programs(__name__)
program, each, cases = _programs.program, _programs.each, _programs.cases


def parameters_of(device: str) -> list[nn.Parameter]:
    made = [nn.Parameter(torch.zeros(n, device=device)) for n in (3, 2)]
    for p in made:
        p.grad = torch.linspace(-2, 3, p.numel(), device=device)
    return made


@program
@each("foreach", [True, False])
@each("norm_type", [1.0, 2.0, float("inf"), 0.5])
def clipped_norm_changes_the_gradients_in_place(device, norm_type, foreach):
    parameters = parameters_of(device)
    before = [p.grad for p in parameters]
    norm = clip_grad_norm_(parameters, 1.0, norm_type, foreach=foreach)
    return norm, before, [p.grad for p in parameters]


@program
@each("foreach", [True, False])
def clipped_values_change_the_gradients_in_place(device, foreach):
    parameters = parameters_of(device)
    before = [p.grad for p in parameters]
    clip_grad_value_(parameters, 0.5, foreach=foreach)
    return before, [p.grad for p in parameters]


@program
@each("foreach", [True, False])
def norm_that_is_not_finite_is_refused(device, foreach):
    parameters = parameters_of(device)
    parameters[0].grad[1] = float("inf")
    return refusal(
        lambda: clip_grad_norm_(
            parameters, 1.0, error_if_nonfinite=True, foreach=foreach
        ),
        "is non-finite, so it cannot be clipped",
    ), [p.grad for p in parameters]


@program
def foreach_clipping_of_sparse_gradients(device):
    p = nn.Parameter(torch.ones(3, device=device))
    p.grad = torch.ones(3, device=device).to_sparse()
    try:
        clip_grad_norm_([p], 1.0)
    except NotImplementedError as error:  # before torch 2.14
        return str(error).split("' ")[0]  # then come the names of all backends
    return p.grad.to_dense()


@program
def norm_and_clipping_in_two_steps(device):
    parameters = parameters_of(device)
    norm = get_total_norm([p.grad for p in parameters], foreach=True)
    clip_grads_with_norm_(parameters, 1.0, norm, foreach=True)
    return norm, [p.grad for p in parameters]


@program
def norm_of_no_gradients_is_zero(device):
    p = nn.Parameter(torch.ones(1, device=device))
    return clip_grad_norm_([p], 1.0).item(), get_total_norm([]).item()


@program
@each("foreach", [True, False])
def clipping_between_forward_and_backward_is_noticed(device, foreach):
    parameters = parameters_of(device)
    loss = sum(
        (g * g * p).sum() for p, g in ((p, p.grad.requires_grad_()) for p in parameters)
    )
    with torch.no_grad():
        clip_grad_norm_(parameters, 0.1, foreach=foreach)
    return refusal(loss.backward, "modified by an inplace operation")


@program
@each("fused", [False, True])
def scaler_skips_the_step_with_infinite_gradients(device, fused):
    p = nn.Parameter(torch.ones(2, device=device))
    optimizer = torch.optim.SGD([p], lr=0.5, fused=fused)
    scaler = torch.amp.GradScaler(device, init_scale=8.0, growth_interval=1)
    facts = []
    for factor in (1.0, float("inf"), 2.0):
        optimizer.zero_grad()
        scaler.scale((p * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        facts.append((scaler.get_scale(), p.detach().clone()))
    return facts, p, scaler.state_dict()


@program
def scaler_unscales_in_place_and_once(device):
    p = nn.Parameter(torch.ones(2, device=device))
    optimizer = torch.optim.SGD([p], lr=0.5)
    scaler = torch.amp.GradScaler(device, init_scale=4.0)
    scaler.scale(p.sum()).backward()
    gradient = p.grad
    scaler.unscale_(optimizer)
    again = refusal(lambda: scaler.unscale_(optimizer), "has already been called")
    return gradient, p.grad, again


@program
def scaler_refuses_half_gradients(device):
    p = nn.Parameter(torch.ones(2, device=device, dtype=torch.float16))
    optimizer = torch.optim.SGD([p], lr=0.5)
    scaler = torch.amp.GradScaler(device, init_scale=4.0)
    scaler.scale(p.sum()).backward()
    return refusal(lambda: scaler.unscale_(optimizer), "FP16 gradients")
