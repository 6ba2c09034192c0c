# SPDX-License-Identifier: BSD-3-Clause
"""Ring attention over ranks has the results of attention on one CPU.

context_parallel has no rule for the CPU's operator, so the CPU computes it alone.
"""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard, distribute_tensor
from torch.distributed.tensor.experimental import context_parallel
from torch.distributed.tensor.experimental._attention import (
    _cp_options,
    context_parallel_unshard,
    set_rotate_method,
)

from support.ranks import run_ranks

pytestmark = pytest.mark.differs_in_process("occl", run=False)

SHAPE = (2, 4, 32, 8)  # batch, heads, positions, features


def attention(causal: bool) -> tuple[list[torch.Tensor], torch.Tensor, list]:
    """Returns inputs, the output's gradient, and the CPU's output and gradients."""
    torch.manual_seed(0)
    qkv = [torch.randn(SHAPE) for _ in range(3)]
    gradient = torch.randn(SHAPE)
    given = [x.clone().requires_grad_() for x in qkv]
    output = F.scaled_dot_product_attention(*given, is_causal=causal)
    output.backward(gradient)
    return qkv, gradient, [output.detach(), *(x.grad for x in given)]


def rings(rank: int, world: int, cases: list[tuple[bool, bool, str]]) -> None:
    for case in cases:
        ring(world, *case)


def ring(world: int, causal: bool, balance: bool, rotate: str) -> None:
    mesh = init_device_mesh("openreg", (world,))
    _cp_options.enable_load_balance = balance
    set_rotate_method(rotate)
    qkv, gradient, wanted = attention(causal)
    buffers = [x.to("openreg") for x in (*qkv, gradient)]
    # context_parallel replaces the function in its module.
    with context_parallel(mesh, buffers=buffers, buffer_seq_dims=[2] * 4):
        given = [x.detach().requires_grad_() for x in buffers[:3]]
        output = F.scaled_dot_product_attention(*given, is_causal=causal)
        output.backward(buffers[3])
        parts = [output.detach(), *(x.grad for x in given)]
        assert parts[0].shape[2] == SHAPE[2] // world
        found = context_parallel_unshard(mesh, parts, [2] * 4)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one.cpu(), other, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("world", "cases"),
    [
        (
            2,
            [
                # causal, balanced loads, method of passing keys and values
                (False, False, "allgather"),
                (True, False, "alltoall"),
                (True, True, "allgather"),
            ],
        ),
        (4, [(True, True, "alltoall")]),
    ],
)
def test_ring_attention_is_that_of_one_cpu(world, cases):
    run_ranks(rings, world, world, cases)


def heads(rank: int) -> None:
    mesh = init_device_mesh("openreg", (2,))
    qkv, gradient, wanted = attention(True)
    given = [
        distribute_tensor(x.to("openreg"), mesh, [Shard(1)]).requires_grad_()
        for x in qkv
    ]
    output = F.scaled_dot_product_attention(*given, is_causal=True)
    assert isinstance(output, DTensor)
    assert output.placements == (Shard(1),)
    output.backward(distribute_tensor(gradient.to("openreg"), mesh, [Shard(1)]))
    found = [output.detach(), *(x.grad for x in given)]
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one.full_tensor().cpu(), other)


def test_attention_of_dtensors_keeps_heads_where_they_are():
    run_ranks(heads, 2)
