# SPDX-License-Identifier: BSD-3-Clause
"""Differences of openreg from the CPU: host waits, and CUDA's dtypes.

That it computes as the CPU does is found by openreg-conformance; openreg.toml has what
is known to differ.
"""

import warnings

# The databases warn of optional packages when they are first imported.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal import common_methods_invocations as _  # noqa: F401

DEVICE = "openreg"
