# SPDX-License-Identifier: BSD-3-Clause
"""Training on two ranks has the losses of the CPU with gloo."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.distributed as dist
from torch import nn

from torch_openreg.testing import run_ranks

pytestmark = pytest.mark.differs_in_process("occl", run=False)

STEPS = 5


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))


def batch(rank: int, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(rank + 1)
    given, wanted = (torch.randn(6, n, generator=generator) for n in (8, 4))
    return given.to(device), wanted.to(device)


def ddp(device: str) -> nn.Module:
    from torch.nn.parallel import DistributedDataParallel

    return DistributedDataParallel(model().to(device))


def fsdp2(device: str) -> nn.Module:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh(device, (2,))
    sharded = model().to(device)
    for layer in (sharded[0], sharded[2]):
        fully_shard(layer, mesh=mesh)
    return fully_shard(sharded, mesh=mesh)


def tensor_parallel(device: str) -> nn.Module:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    mesh = init_device_mesh(device, (2,))
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    return parallelize_module(model().to(device), mesh, plan)


def train(rank: int, make: Callable[[str], nn.Module], device: str) -> list[float]:
    net = make(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    # Ranks that share one model need the same batch.
    given, wanted = batch(0 if make is tensor_parallel else rank, device)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(given), wanted)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def train_without_a_name(rank: int, device: str) -> list[float]:
    dist.init_process_group()
    losses = train(rank, ddp, device)
    group = dist.new_group()
    total = torch.ones(1, device=device)
    dist.all_reduce(total, group=group)
    assert total.item() == 2
    dist.destroy_process_group()
    return losses


def test_group_without_a_name_of_a_backend_trains_as_on_the_cpu():
    wanted = run_ranks(train, 2, ddp, "cpu", backend="gloo", start_method="forkserver")
    found = run_ranks(
        train_without_a_name, 2, "openreg", backend=None, start_method="forkserver"
    )
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize(
    "make", [pytest.param(ddp, marks=pytest.mark.slow), fsdp2, tensor_parallel]
)
@pytest.mark.timeout(120)
def test_losses_are_those_of_the_cpu(make):
    wanted = run_ranks(train, 2, make, "cpu", backend="gloo", start_method="forkserver")
    found = run_ranks(train, 2, make, "openreg", backend="occl")  # like torchrun
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other)
        assert one[-1] < one[0]
