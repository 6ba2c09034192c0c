# SPDX-License-Identifier: BSD-3-Clause
"""Device tensors go through pipes and queues of torch.multiprocessing."""

import torch
import torch.multiprocessing as mp

here, there = mp.Pipe()
x = torch.ones(2, device="openreg")
here.send(x)
received = there.recv()
print(received, received.data_ptr() == x.data_ptr())
# prints: tensor([1., 1.], device='openreg:0') True
# without it: RuntimeError: _share_fd_: only available on CPU
