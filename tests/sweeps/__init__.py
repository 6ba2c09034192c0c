# SPDX-License-Identifier: BSD-3-Clause
"""Differences of openreg from the CPU: host waits, and CUDA's dtypes.

openreg-conformance tests that results equal the CPU's; openreg.toml lists the known
differences.
"""

import warnings

# The databases warn of optional packages when they are first imported.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal import common_methods_invocations as _  # noqa: F401

DEVICE = "openreg"
