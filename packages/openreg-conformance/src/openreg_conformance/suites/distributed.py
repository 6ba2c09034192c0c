# SPDX-License-Identifier: BSD-3-Clause
"""Process groups: collectives of one rank and of two, and DistributedDataParallel."""

import subprocess
import sys

import torch

from openreg_conformance.case import Suite

from .multiprocessing import LOAD

_suite = Suite(__name__)
case, cases = _suite.case, _suite.cases

# Two ranks, which are processes that meet in a file.
RANKS = (
    LOAD
    + """
import tempfile
import torch.distributed as dist

def start(rank, file):
    count = 1 if device == "cpu" else torch.accelerator.device_count()
    where = torch.device(device, rank % count)
    if count > 1:
        torch.accelerator.set_device_index(where.index)
    # By name: of a backend that PyTorch chooses, DistributedDataParallel finds no name
    # unless it is NCCL or Gloo.
    backend = dist.get_default_backend_for_device(device)
    dist.init_process_group(
        backend, init_method="file://" + file, rank=rank, world_size=2)
    work(rank, where)
    dist.destroy_process_group()

if __name__ == "__main__":
    file = tempfile.mktemp()
    mp.spawn(start, args=(file,), nprocs=2)
"""
)


def run(work, device):
    import pathlib
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "ranks.py"
        path.write_text(RANKS.replace("if __name__", work + "\nif __name__"))
        command = [sys.executable, str(path), device]
        done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"status {done.returncode}: {done.stderr[-900:]}"


@case("process_group")
def device_has_a_backend(device):
    """The device has a backend, which init_process_group finds for an accelerator."""
    import torch.distributed as dist

    # PyTorch takes that of the accelerator, if the machine has one.
    accelerator = torch.accelerator.current_accelerator()
    named = accelerator is not None and accelerator.type != device
    backend = dist.get_default_backend_for_device(device) if named else None
    dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    try:
        x = torch.arange(4.0, device=device)
        dist.all_reduce(x)
        dist.barrier()
        assert x.tolist() == [0, 1, 2, 3]
    finally:
        dist.destroy_process_group()


@case("process_group", subject="collectives", level="sample")
def two_ranks_exchange_tensors(device):
    """Two ranks sum, broadcast, gather and scatter device tensors."""
    run(
        """
def work(rank, where):
    x = torch.full((4,), rank + 1.0, device=where)
    dist.all_reduce(x)
    assert x.tolist() == [3] * 4, x
    x = torch.full((4,), float(rank), device=where)
    dist.broadcast(x, 1)
    assert x.tolist() == [1] * 4, x
    parts = [torch.empty(2, device=where) for _ in range(2)]
    dist.all_gather(parts, torch.full((2,), float(rank), device=where))
    assert [p.tolist() for p in parts] == [[0, 0], [1, 1]]
""",
        device,
    )


@case("process_group", subject="DistributedDataParallel", level="sample")
def two_ranks_train_together(device):
    """DistributedDataParallel gives all ranks the mean of their gradients."""
    run(
        """
def work(rank, where):
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 1, bias=False).to(where)
    model = torch.nn.parallel.DistributedDataParallel(model)
    model(torch.full((1, 3), rank + 1.0, device=where)).sum().backward()
    assert model.module.weight.grad.tolist() == [[1.5] * 3]
""",
        device,
    )
