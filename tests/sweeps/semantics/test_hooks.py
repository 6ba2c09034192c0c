# SPDX-License-Identifier: BSD-3-Clause
"""Hooks of tensors, gradients, saved tensors and the graph: count and order."""

from __future__ import annotations

import torch
from torch.autograd import graph

from openreg_conformance.suites.semantics.hooks import leaf


def test_saved_tensors_wait_in_pinned_memory() -> None:
    # CUDA: pack_to_cpu of save_on_cpu in torch/autograd/graph.py.
    hooks = graph.save_on_cpu(pin_memory=True, device_type="openreg")
    x = leaf("openreg")
    _, packed = hooks.pack_hook(x.detach())
    with hooks:
        y = x.exp()
    y.sum().backward()
    assert packed.is_pinned()
    assert torch.equal(x.grad, x.detach().exp())
