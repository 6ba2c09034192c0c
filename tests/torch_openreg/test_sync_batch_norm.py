# SPDX-License-Identifier: BSD-3-Clause
"""torch.nn.SyncBatchNorm trains over two ranks as over one batch on the CPU."""

from __future__ import annotations

from collections.abc import Callable

Output = Callable[..., str]

# Two devices, and a process group of threads: collectives run in Python there.
PROGRAM = """
import copy
import threading

import torch
import torch.distributed as dist
from torch.testing._internal.distributed import multi_threaded_pg as threaded


class Ranks(threaded.ProcessLocalGroup):
    def all_gather_single(self, output, input, opts=None):
        parts = list(output.view(-1).chunk(self.size()))
        return self.allgather([parts], [input.view(-1)])


dist.Backend.register_backend(
    "ranks", lambda store, rank, size, timeout: Ranks(rank, size), devices=["openreg"]
)
threaded._install_threaded_pg()
torch._C._distributed_c10d._set_thread_isolation_mode(True)
torch.manual_seed(0)
x, split = torch.randn(7, 3, 4, 4), [2, 5]
plain = torch.nn.Sequential(
    torch.nn.Conv2d(3, 6, 2), torch.nn.BatchNorm2d(6), torch.nn.ReLU()
)
sync = torch.nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(plain))
store, outputs, inputs, models = dist.HashStore(), {}, {}, {}


def train(model, x):
    output = model(x)
    output.square().sum().backward()
    return output.detach().cpu()


def work(rank):
    dist.init_process_group("ranks", rank=rank, world_size=2, store=store)
    device = torch.device("openreg", rank)
    torch.accelerator.set_device_index(rank)
    models[rank] = copy.deepcopy(sync).to(device)
    inputs[rank] = x.split(split)[rank].to(device).requires_grad_()
    # Ranks wait for each other in the backward pass, each in its own thread.
    with torch.autograd.set_multithreading_enabled(False):
        outputs[rank] = train(models[rank], inputs[rank])


ranks = [threading.Thread(target=work, args=(rank,)) for rank in range(2)]
for rank in ranks:
    rank.start()
for rank in ranks:
    rank.join()
leaf = x.clone().requires_grad_()
output = train(plain, leaf)
close = torch.testing.assert_close
close(torch.cat([outputs[0], outputs[1]]), output)
close(torch.cat([inputs[rank].grad.cpu() for rank in range(2)]), leaf.grad)
for name, parameter in plain.named_parameters():
    parts = [models[rank].get_parameter(name).grad.cpu() for rank in range(2)]
    close(parts[0] + parts[1], parameter.grad, rtol=1e-4, atol=1e-4)
for name, buffer in plain.named_buffers():
    for rank in range(2):
        close(models[rank].get_buffer(name).cpu(), buffer)
print(type(models[0][1]).__name__)
"""


def test_two_ranks_normalize_as_one_batch(output: Output) -> None:
    assert output(PROGRAM) == "SyncBatchNorm"
