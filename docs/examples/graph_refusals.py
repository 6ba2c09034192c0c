# SPDX-License-Identifier: BSD-3-Clause
"""Operators that cannot be captured, and the errors that they raise."""

import torch

x = torch.ones(4, device="openreg")
stream = torch.Stream(device="openreg")
for call in (lambda: x.sum().item(), x.nonzero):
    try:
        with stream, torch.accelerator.Graph():
            call()
    except torch.AcceleratorError as error:
        print(str(error.__context__).split("(")[-1].split(" in a graph")[0])
        for each in (error.__context__, error):
            print(str(each).removeprefix("OpenReg error: ").split(" (or")[0])
# prints: aten::_local_scalar_dense cannot be captured
# prints: operation not permitted when stream is capturing
# prints: operation failed due to a previous error during capture
# prints: aten::nonzero cannot be captured
# prints: operation not permitted when stream is capturing
# prints: operation failed due to a previous error during capture
