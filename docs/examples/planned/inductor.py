# SPDX-License-Identifier: BSD-3-Clause
"""The default compiler generates code for devices that it knows."""

import torch

torch.compile(torch.sin)(torch.ones(2, device="openreg"))
# fails: torch._inductor.exc.InductorError: KeyError: 'openreg'
