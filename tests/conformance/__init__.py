# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's own operator, module and optimizer databases, on openreg and on the CPU."""

import warnings

# The databases warn of optional packages when they are first imported.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal import common_methods_invocations as _  # noqa: F401

DEVICE = "openreg"
