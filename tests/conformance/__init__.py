# SPDX-License-Identifier: BSD-3-Clause
"""Tests of openreg-conformance, which tests any device."""

import warnings

# PyTorch's databases warn of optional packages when they are first imported.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal import common_methods_invocations as _  # noqa: F401
