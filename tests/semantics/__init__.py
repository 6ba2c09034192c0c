# SPDX-License-Identifier: BSD-3-Clause
"""Programs that run on the CPU and on the device and have to observe the same."""

import warnings

import torch

# What PyTorch warns of when it is first used, whatever the device: its decompositions
# for jvp are compiled, and sparse CSR tensors are in beta state.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch._decomp import decompositions_for_jvp as _  # noqa: F401

    torch.eye(1).to_sparse_csr()
