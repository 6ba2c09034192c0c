# SPDX-License-Identifier: BSD-3-Clause
"""A GRU takes the CPU's steps: the inputs of all time steps are multiplied at once."""

import torch

torch.manual_seed(0)
gru = torch.nn.GRU(40, 50)
x = torch.randn(30, 20, 40)
on_cpu, _ = gru(x)
y, _ = gru.to("openreg")(x.to("openreg"))
y.sum().backward()
print(y.cpu().equal(on_cpu), y.grad_fn.next_functions[0][0].name())
# prints: True AddBackward0
# without it: ThnnFusedGruCellBackward0
