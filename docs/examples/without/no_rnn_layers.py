# SPDX-License-Identifier: BSD-3-Clause
"""The device passes an LSTM to oneDNN, as the CPU does."""

import torch

torch.manual_seed(0)
lstm = torch.nn.LSTM(40, 50)
x = torch.randn(30, 20, 40)
on_cpu, _ = lstm(x)
y, _ = lstm.to("openreg")(x.to("openreg"))
print(y.cpu().equal(on_cpu), y.grad_fn.name())
# prints: True MkldnnRnnLayerBackward0
# without it: False StackBackward0
