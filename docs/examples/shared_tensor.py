# SPDX-License-Identifier: BSD-3-Clause
"""A device tensor that two processes share."""

import torch
import torch.multiprocessing as mp


def double(tasks, done):
    """Doubles a tensor in place, in the child process."""
    x = tasks.get()
    x.mul_(2)
    torch.openreg.synchronize()
    done.set()


if __name__ == "__main__":
    spawn = mp.get_context("spawn")
    tasks, done = spawn.Queue(), spawn.Event()
    worker = spawn.Process(target=double, args=(tasks, done))
    worker.start()
    x = torch.arange(3.0, device="openreg:1")
    tasks.put(x)
    done.wait()
    print(x)
    # prints: tensor([0., 2., 4.], device='openreg:1')
    worker.join()
