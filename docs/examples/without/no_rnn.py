# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch calls fused cells on PrivateUse1 devices; the CPU does not have them."""

import torch

lstm = torch.nn.LSTM(2, 3).to("openreg")
with torch.autocast("openreg", torch.bfloat16):
    print(lstm(torch.ones(4, 1, 2, device="openreg"))[0].dtype)
# prints: torch.bfloat16
# without it: NotImplementedError: Could not run 'aten::_thnn_fused_lstm_cell'
