# SPDX-License-Identifier: BSD-3-Clause
"""Random DTensors: every rank draws its part of the numbers of one CPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Output = Callable[..., str]

# A process group that moves nothing: random DTensors need no more.
START = """
import torch
import torch.distributed as dist
from torch.distributed.tensor import (
    DTensor, Replicate, Shard, distribute_tensor, init_device_mesh, rand, randn,
)
from torch.testing._internal.distributed.fake_pg import FakeStore, _create_fake_pg

def start(rank, size):
    dist.Backend.register_backend(
        "nothing", _create_fake_pg, extended_api=True, devices=["openreg"]
    )
    dist.init_process_group("nothing", store=FakeStore(), rank=rank, world_size=size)
    torch.openreg.set_device(rank % 2)
    return init_device_mesh("openreg", (size,))
"""


@pytest.mark.parametrize("rank", range(4))
def test_ranks_draw_their_part_of_the_numbers_of_one_cpu(
    output: Output, rank: int
) -> None:
    source = f"""{START}
mesh = start({rank}, 4)
device = torch.device("openreg", {rank} % 2)
torch.manual_seed(6)
ours = [
    rand(16, 5, device_mesh=mesh, placements=[Shard(0)]),
    rand(8, device_mesh=mesh, placements=[Replicate()]),
    randn(64, 2, device_mesh=mesh, placements=[Shard(0)]),
    rand(16, device_mesh=mesh, placements=[Shard(0)]),
]
after = torch.rand(3, device=device)
torch.manual_seed(6)
whole = [torch.rand(16, 5), torch.rand(8), torch.randn(64, 2), torch.rand(16)]
for drawn, expected in zip(ours, whole):
    assert drawn.to_local().device == device
    part = expected if drawn.placements[0].is_replicate() else (
        expected.chunk(4)[{rank}]
    )
    assert drawn.to_local().cpu().equal(part), (drawn, part)
assert after.cpu().equal(torch.rand(3))
print("equal")
"""
    assert output(source) == "equal"


def test_operators_and_generators_of_dtensors_follow_the_offset(output: Output) -> None:
    source = f"""{START}
parts = []
mesh = start(1, 2)
d = "openreg:1"
base = DTensor.from_local(torch.ones(20, device=d), mesh, [Shard(0)])
torch.manual_seed(3)
dropped = torch.nn.functional.dropout(base).to_local().cpu()
uniform = torch.empty_like(base).uniform_(-1, 1).to_local().cpu()
own = torch.Generator(d).manual_seed(4)
given = base.clone().uniform_(generator=own).to_local().cpu()
torch.manual_seed(3)
assert dropped.equal(torch.nn.functional.dropout(torch.ones(40))[20:])
assert uniform.equal(torch.empty(40).uniform_(-1, 1)[20:])
on_cpu = torch.Generator().manual_seed(4)
assert given.equal(torch.rand(40, generator=on_cpu)[20:])
assert own.get_offset() == 40
print(torch.openreg.default_generators[1].get_offset())
"""
    assert output(source) == "80"


def test_tracker_of_offsets_sets_and_restores_the_state(output: Output) -> None:
    source = f"""{START}
from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from torch.distributed.tensor._random import OffsetBasedRNGTracker, manual_seed

mesh = start(1, 2)
manual_seed(12, mesh)
tracker = OffsetBasedRNGTracker(mesh, run_state_sync=True)
size = torch.Size([1000])
meta = TensorMeta(size, (1,), torch.float32)
spec = DTensorSpec(mesh, (Shard(0),), tensor_meta=meta)
with tracker._distribute_region(spec):
    assert torch.openreg.default_generators[1].get_offset() == 500
    inside = torch.rand(500, device="openreg:1").cpu()
assert torch.openreg.default_generators[1].get_offset() == 1000
expected = torch.rand(1000, generator=torch.Generator().manual_seed(12))
print(inside.equal(expected[500:]))
"""
    assert output(source) == "True"
