# SPDX-License-Identifier: BSD-3-Clause
"""Registers the device with PyTorch, once, when it is imported."""

from __future__ import annotations

from pathlib import Path

import torch

import libopenreg

# [step 5]
# [docs: one-backend]
# Check before loading the library: a second backend's registrations abort the process.
if (other := torch._C._get_privateuse1_backend_name()) != "privateuseone":
    raise RuntimeError(
        f"torch-minimal cannot be loaded: the backend '{other}' is, and a process has "
        "one PrivateUse1 device. Set TORCH_DEVICE_BACKEND_AUTOLOAD=0 and import one of "
        "the two packages, or install them into two environments."
    )
# [docs: end]
# [step end]

libopenreg.load()  # the driver, wherever its wheel is
# Loading the library runs the registrations in C++.
torch.ops.load_library(Path(__file__).parent / "libtorch_minimal.so")

# [step 5]
# [docs: rename]
from torch_minimal import device  # noqa: E402

torch.utils.rename_privateuse1_backend("minimal")
torch._register_device_module("minimal", device)
torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
# [docs: end]
# [step end]

# [step 7]
# [docs: square-derivative]
torch.library.register_fake("minimal::square", torch.empty_like)
torch.library.register_autograd(
    "minimal::square",
    lambda ctx, grad: grad * 2 * ctx.saved_tensors[0],
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),  # noqa: ARG005
)
# [docs: end]
# [step end]
