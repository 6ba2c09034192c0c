# SPDX-License-Identifier: BSD-3-Clause
"""``torch.utils.checkpoint``: what is computed again, and with which numbers."""

import torch
import torch.utils.checkpoint
from torch import nn

from openreg_conformance.checks.observing import Programs, refusal

_programs = Programs(__name__)
program, each, cases = _programs.program, _programs.each, _programs.cases


def leaf(device: str, *shape: int) -> torch.Tensor:
    size = torch.Size(shape or (3,))
    x = torch.linspace(-1, 2, size.numel(), device=device).view(size)
    return x.requires_grad_()


@program
@each("reentrant", [True, False])
def checkpoint_recomputes_the_same_values(device, reentrant):
    module = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 1)).to(device)
    calls = []
    module[0].register_forward_hook(lambda *_: calls.append("forward"))
    x = leaf(device, 2, 3)
    torch.manual_seed(3)
    y = torch.utils.checkpoint.checkpoint(module, x, use_reentrant=reentrant)
    y.sum().backward()
    return y.detach(), x.grad, [p.grad for p in module.parameters()], calls


@program
def checkpoint_refuses_another_computation(device):
    counter = []

    def changing(x):
        counter.append(1)
        return (x * x).exp() if len(counter) == 1 else x * 2

    y = torch.utils.checkpoint.checkpoint(changing, leaf(device), use_reentrant=False)
    return refusal(y.sum().backward, "A different number of tensors was saved")


@program
def selective_checkpoint_recomputes_the_rest(device):
    from torch.utils.checkpoint import (
        CheckpointPolicy,
        create_selective_checkpoint_contexts,
    )

    called = []

    def policy(ctx, op, *args, **kwargs):
        called.append(f"{ctx.is_recompute} {op}")
        if op is torch.ops.aten.mm.default:
            return CheckpointPolicy.MUST_SAVE
        return CheckpointPolicy.PREFER_RECOMPUTE

    x = leaf(device, 2, 2)
    y = torch.utils.checkpoint.checkpoint(
        lambda x: (x @ x).sin().cos(),
        x,
        use_reentrant=False,
        context_fn=lambda: create_selective_checkpoint_contexts(policy),
    )
    y.sum().backward()
    return called, x.grad
