# SPDX-License-Identifier: BSD-3-Clause
"""Random DTensors: ranks draw at the offsets that PyTorch assigns."""

from __future__ import annotations

from collections.abc import Callable

Output = Callable[..., str]

# A process group without communication, which is enough for random DTensors.
START = '''
import torch
import torch.distributed as dist
from torch.distributed.tensor import (
    DTensor, Replicate, Shard, distribute_tensor, init_device_mesh, rand, randn,
)
from torch.testing._internal.distributed.fake_pg import FakeStore, _create_fake_pg

dist.Backend.register_backend(
    "nothing", _create_fake_pg, extended_api=True, devices=["openreg"]
)

def from_offset(offset, seed):
    """A generator of the CPU, 4 numbers on for each one of the offset."""
    generator = torch.Generator().manual_seed(seed)
    torch.rand(4 * offset, generator=generator)
    return generator

def start(rank, size):
    dist.init_process_group("nothing", store=FakeStore(), rank=rank, world_size=size)
    torch.openreg.set_device(rank % 2)
    return init_device_mesh("openreg", (size,))
'''


def test_ranks_draw_numbers_of_the_cpu_from_their_offsets(output: Output) -> None:
    source = f"""{START}
from torch.distributed.tensor import _random

for rank in range(4):
    mesh = start(rank, 4)
    _random._rng_tracker = None  # PyTorch keeps the device of the last rank
    device = torch.device("openreg", rank % 2)
    torch.manual_seed(6)
    offset = 0
    for draw, size, part in (
        (rand, (16, 5), (4, 5)),
        (rand, (8,), None),
        (randn, (64, 2), (16, 2)),
        (rand, (16,), (4,)),
    ):
        placements = [Replicate()] if part is None else [Shard(0)]
        drawn = draw(*size, device_mesh=mesh, placements=placements).to_local()
        begin = offset if part is None else offset + rank * torch.Size(part).numel()
        on_cpu = torch.rand if draw is rand else torch.randn
        expected = on_cpu(*(part or size), generator=from_offset(begin, 6))
        assert drawn.device == device
        assert drawn.cpu().equal(expected), (rank, drawn, expected)
        offset += torch.Size(size).numel()
    after = torch.rand(3, device=device).cpu()
    assert after.equal(torch.rand(3, generator=from_offset(offset, 6)))
    dist.destroy_process_group()
print("equal")
"""
    assert output(source) == "equal"


def test_operators_and_generators_of_dtensors_follow_the_offset(output: Output) -> None:
    source = f"""{START}
import itertools
mesh = start(1, 2)
d = "openreg:1"
base = DTensor.from_local(torch.ones(2000, device=d), mesh, [Shard(0)])
torch.manual_seed(3)
masks = [torch.nn.functional.dropout(base).to_local().cpu() for _ in range(2)]
uniform = torch.empty_like(base).uniform_(-1, 1).to_local().cpu()
torch.set_rng_state(from_offset(2000, 3).get_state())
assert masks[0].equal(torch.nn.functional.dropout(torch.ones(2000)))
expected = torch.empty(2000).uniform_(-1, 1, generator=from_offset(10000, 3))
assert uniform.equal(expected)
assert torch.openreg.default_generators[1].get_offset() == 12000

# Ranks and calls share no numbers, although a mask uses two per element.
torch.set_rng_state(from_offset(0, 3).get_state())
masks.append(torch.nn.functional.dropout(torch.ones(2000)))
for one, other in itertools.permutations(masks, 2):
    for shift in range(0, 1500, 250):
        assert not one[shift:].equal(other[: 2000 - shift])

own = torch.Generator(d).manual_seed(4)
given = base.clone().uniform_(generator=own).to_local().cpu()
assert given.equal(torch.rand(2000, generator=from_offset(2000, 4)))
print(own.get_offset())
"""
    assert output(source) == "4000"


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
print(inside.equal(torch.rand(500, generator=from_offset(500, 12))))
"""
    assert output(source) == "True"


def test_dtensor_is_drawn_while_a_normal_is_kept(output: Output) -> None:
    source = f"""{START}
mesh = start(0, 2)
torch.manual_seed(3)
torch.nn.init.normal_(torch.empty(3, device="openreg"))  # an odd number
offset = torch.openreg.default_generators[0].get_offset()
weight = DTensor.from_local(torch.empty(4, 4, device="openreg"), mesh, [Shard(0)])
torch.nn.init.uniform_(weight)
on_cpu = torch.Generator().manual_seed(3)
torch.randn(3, generator=on_cpu)
print(weight.to_local().cpu().equal(torch.rand(4, 4, generator=on_cpu)))
print(torch.openreg.default_generators[0].get_offset() - offset)
"""
    assert output(source) == "True\n32"
