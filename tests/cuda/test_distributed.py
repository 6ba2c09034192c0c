# SPDX-License-Identifier: BSD-3-Clause
"""Groups of processes: occl serves nccl, and gloo refuses device tensors."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support.programs import Program, run, variables

_WARNINGS = (
    *("-W", "error"),
    *("-W", "ignore:CUDA is simulated"),
    *("-W", "ignore:barrier"),  # PyTorch issues it once per group, for each backend
)
GLOO = """
import torch, torch.distributed as dist
store = dist.FileStore({path!r}, 1)
dist.init_process_group("gloo", store=store, rank=0, world_size=1)
x = torch.ones(2)
dist.all_reduce(x)
print(x.tolist())
for call in (dist.all_reduce, lambda x: dist.broadcast(x, 0)):
    try:
        call(torch.ones(2, device="cuda"))
    except RuntimeError as error:
        print(error)
dist.destroy_process_group()
"""


def test_gloo_refuses_device_tensors(interpreter: Program, tmp_path: Path) -> None:
    ended = interpreter(GLOO.format(path=str(tmp_path / "store")))
    refusal = "No backend type associated with device type cuda"
    assert ended.stdout.splitlines() == ["[1.0, 1.0]", refusal, refusal], ended.stderr


def test_gloo_for_cuda_is_refused(interpreter: Program, tmp_path: Path) -> None:
    source = GLOO.format(path=str(tmp_path / "store"))
    ended = interpreter(source.replace('"gloo"', '"cpu:gloo,cuda:gloo"'))
    assert "'cpu:gloo,cuda:gloo' assigns gloo to CUDA tensors" in ended.stderr


GROUPS = """
import torch, torch.distributed as dist
store = dist.FileStore({path!r}, 1)
device = torch.device("cuda", 0)
dist.init_process_group(
    "nccl", store=store, rank=0, world_size=1, device_id=device
)
group = dist.new_group([0], backend="gloo")
x = torch.ones(2)
dist.all_reduce(x, group=group)
dist.barrier(group=group)
print(x.tolist())
try:
    dist.all_reduce(torch.ones(2, device=device), group=group)
except RuntimeError as error:
    print(error)
dist.destroy_process_group()
"""


def test_a_group_of_gloo_beside_nccl_serves_the_cpu(
    interpreter: Program, tmp_path: Path
) -> None:
    ended = interpreter(GROUPS.format(path=str(tmp_path / "store")))
    refusal = "No backend type associated with device type cuda"
    assert ended.stdout.splitlines() == ["[1.0, 1.0]", refusal], ended.stderr


RANK = """
import os
import sys
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn


def trained(rank, device):
    torch.manual_seed(0)
    layers = nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)
    model = nn.Sequential(*layers).to(device)
    WRAP
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.1)
    for step in range(3):
        numbers = torch.Generator().manual_seed(10 * step + rank)
        x = torch.randn(6, 8, generator=numbers).to(device)
        optimizer.zero_grad()
        parallel(x).square().mean().backward()
        optimizer.step()
    return [whole(parameter.detach()).cpu() for parameter in parallel.parameters()]


def whole(tensor):
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def run(rank, backend, folder):
    store = dist.FileStore(f"{folder}/store_{backend}", 2)
    dist.init_process_group(backend, store=store, rank=rank, world_size=2)
    assert dist.get_backend() == backend
    device = torch.device("cuda", rank) if backend == "nccl" else torch.device("cpu")
    if backend == "nccl":
        torch.cuda.set_device(rank)
    x = torch.full((3,), rank + 1.0, device=device)
    dist.all_reduce(x)
    parts = [torch.empty(3, device=device) for _ in range(2)]
    dist.all_gather(parts, x + rank)
    dist.barrier()
    results = [x.cpu(), *(part.cpu() for part in parts), *trained(rank, device)]
    if rank == 0:
        torch.save(results, f"{folder}/{backend}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    folder = sys.argv[1]
    for backend in ("nccl", "gloo"):
        mp.spawn(run, (backend, folder), nprocs=2)
    ours, theirs = (torch.load(f"{folder}/{name}.pt") for name in ("nccl", "gloo"))
    print(all(map(torch.equal, ours, theirs)), dist.is_nccl_available())
"""
WRAPS = {
    "DDP": "parallel = nn.parallel.DistributedDataParallel(model)",
    "FSDP2": """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    mesh = init_device_mesh(device.type, (2,))
    for layer in (model[0], model[2], model):
        fully_shard(layer, mesh=mesh)
    parallel = model
""",
}


@pytest.mark.timeout(180)
@pytest.mark.parametrize("wrap", WRAPS)
def test_training_with_nccl_is_like_the_cpu_with_gloo(
    tmp_path: Path, wrap: str
) -> None:
    script = tmp_path / "script.py"
    script.write_text(RANK.replace("    WRAP\n", f"    {WRAPS[wrap].strip()}\n"))
    environment = variables(OPENREG_DEVICE="cuda", OMP_NUM_THREADS="1")
    ended = run(
        *(sys.executable, *_WARNINGS, script, tmp_path),
        environment=environment,
        seconds=170,
    )
    assert ended.stdout == "True True\n", ended.stderr


MESH = """
import sys
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor


def run(rank, folder):
    torch.cuda.set_device(rank)
    store = dist.FileStore(f"{folder}/store", 2)
    dist.init_process_group("nccl", store=store, rank=rank, world_size=2)
    mesh = init_device_mesh("cuda", (2,))
    x = torch.arange(16.0).view(4, 4)
    rows = distribute_tensor(x, mesh, [Shard(0)])
    product = rows @ distribute_tensor(x.mT.contiguous(), mesh, [Replicate()])
    equal = [torch.equal(product.full_tensor().cpu(), x @ x.mT)]
    dcp.save({"x": rows}, checkpoint_id=f"{folder}/checkpoint")
    loaded = {"x": distribute_tensor(torch.zeros(4, 4), mesh, [Shard(1)])}
    dcp.load(loaded, checkpoint_id=f"{folder}/checkpoint")
    equal.append(torch.equal(loaded["x"].full_tensor().cpu(), x))
    objects = [None, None]
    dist.all_gather_object(objects, rank)
    if rank == 0:
        print(equal, objects)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(run, (sys.argv[1],), nprocs=2)
"""


def test_tensors_and_checkpoints_of_a_mesh(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(MESH)
    environment = variables(OPENREG_DEVICE="cuda")
    ended = run(
        *(sys.executable, "-W", "ignore", script, tmp_path), environment=environment
    )
    assert ended.stdout == "[True, True] [0, 1]\n", ended.stderr


def test_options_of_nccl_are_accepted(interpreter: Program, tmp_path: Path) -> None:
    source = f"""
        import torch, torch.distributed as dist
        store = dist.FileStore({str(tmp_path / "store")!r}, 1)
        options = dist.ProcessGroupNCCL.Options(is_high_priority_stream=True)
        options.config.min_ctas = 4
        options.config.blocking = 0
        dist.init_process_group(
            "cpu:gloo,cuda:nccl", store=store, rank=0, world_size=1, pg_options=options
        )
        for device in ("cpu", "cuda"):
            x = torch.ones(2, device=device)
            dist.all_reduce(x)
            print(x.tolist())
        dist.destroy_process_group()
    """
    ended = interpreter(source)
    assert ended.stdout == "[1.0, 1.0]\n[1.0, 1.0]\n", ended.stderr
