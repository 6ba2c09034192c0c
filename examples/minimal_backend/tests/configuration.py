# SPDX-License-Identifier: BSD-3-Clause
"""Configures PyTorch's own tests for this device; import it before they are created."""

from __future__ import annotations

import unittest

from torch.testing._internal.common_device_type import PrivateUse1TestBase
from torch.testing._internal.opinfo.core import DecorateInfo

# [docs: configuration]
# A few operators of each kind, by OpInfo.full_name. Without a list, all are tested.
OPERATORS = {
    *("add", "abs", "matmul", "sum", "sort", "cat", "where", "index_put", "scatter"),
    *("nn.functional.conv2d", "nn.functional.batch_norm", "nn.functional.softmax"),
    *("linalg.svd", "view_as_complex", "unfold", "clone", "fill", "masked_select"),
    "rand_like",
}
OTHER_NUMBERS = DecorateInfo(
    unittest.expectedFailure, "TestOperators", "test_first_sample"
)

PrivateUse1TestBase.set_test_configs(
    op_allowlist=OPERATORS,
    op_overrides={"rand_like": [OTHER_NUMBERS]},  # the device draws other numbers
    test_exclusions={"TestCUDAGraphs": "*", "TestTorch": ["test_graph"]},
)
PrivateUse1TestBase.bypass_device_restrictions = True  # also run @onlyCUDA tests
# [docs: end]
