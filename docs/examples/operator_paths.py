# SPDX-License-Identifier: BSD-3-Clause
"""The dispatch path of each operator to its CPU kernel."""

import torch

layer = torch.nn.Linear(4, 4).to("openreg")
x = torch.ones(2, 4, device="openreg")
with torch.openreg.operator_paths() as paths:
    layer(x).abs().exp().tril_()
print(paths)
# prints:        1 stub       aten::abs.out
# prints:        1 typed      aten::addmm
# prints:        1 structured aten::exp
# prints:        1 boxed      aten::tril_
