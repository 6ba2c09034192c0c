# SPDX-License-Identifier: BSD-3-Clause
"""Runs PyTorch's operator database with PyTorch's test classes on the device."""

from __future__ import annotations

import configuration  # noqa: F401  (before the tests are created)
import torch
from torch.testing._internal.common_device_type import (
    instantiate_device_type_tests,
    ops,
)
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_utils import TestCase
from torch.utils._pytree import tree_map_only


class TestOperators(TestCase):
    """Runs the first sample of each operator on the device and on the CPU."""

    @ops(op_db, allowed_dtypes=(torch.float32,))
    def test_first_sample(self, device: str, dtype: torch.dtype, op) -> None:
        """Compares the results; ``op`` is an entry of PyTorch's database."""
        sample = next(iter(op.sample_inputs("cpu", dtype)))
        given = (sample.input, sample.args, sample.kwargs)
        x, args, kwargs = tree_map_only(torch.Tensor, lambda t: t.to(device), given)
        self.assertEqual(  # noqa: PT009  (PyTorch's comparison)
            op(x, *args, **kwargs),
            op(sample.input, *sample.args, **sample.kwargs),
            exact_device=False,
        )


instantiate_device_type_tests(TestOperators, globals(), only_for="minimal")
