# SPDX-License-Identifier: BSD-3-Clause
"""A compiler of the device's own, by its name."""

import torch

torch.compile(torch.sin, backend="openreg")(torch.ones(2, device="openreg"))
# fails: torch._dynamo.exc.InvalidBackend: Invalid backend: 'openreg'
