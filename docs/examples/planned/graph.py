# SPDX-License-Identifier: BSD-3-Clause
"""Work is recorded once and played many times."""

import torch

torch.accelerator.Graph()
# fails: RuntimeError: Graph is not supported on device type: openreg
