# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's own tests of operators: its database and test classes, on the device."""

from __future__ import annotations

import torch
from torch.testing._internal.common_device_type import (
    instantiate_device_type_tests,
    ops,
)
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_utils import TestCase
from torch.utils._pytree import tree_map_only

# A few of each kind; take op_db itself for all, and note what your device lacks.
CHOSEN = {
    *("add", "abs", "matmul", "sum", "sort", "cat", "where", "index_put", "scatter"),
    *("nn.functional.conv2d", "nn.functional.batch_norm", "nn.functional.softmax"),
    *("linalg.svd", "view_as_complex", "unfold", "clone", "fill", "masked_select"),
}


class TestOperators(TestCase):
    """The first sample of each operator gives what it gives on the CPU."""

    @ops([op for op in op_db if op.name in CHOSEN], allowed_dtypes=(torch.float32,))
    def test_first_sample(self, device: str, dtype: torch.dtype, op) -> None:
        """Compares results; ``op`` is an entry of PyTorch's database."""
        sample = next(iter(op.sample_inputs("cpu", dtype)))
        given = (sample.input, sample.args, sample.kwargs)
        x, args, kwargs = tree_map_only(torch.Tensor, lambda t: t.to(device), given)
        self.assertEqual(  # noqa: PT009  (it compares as PyTorch does)
            op(x, *args, **kwargs),
            op(sample.input, *sample.args, **sample.kwargs),
            exact_device=False,
        )


instantiate_device_type_tests(TestOperators, globals(), only_for="minimal")
