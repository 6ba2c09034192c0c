# SPDX-License-Identifier: BSD-3-Clause
"""The hardware classification of tests, which PyTorch has since version 2.14.

PyTorch's tests declare which hardware they need, and ``--hw-classification`` selects
among them. The cases of this package run on every accelerator, or on the CPU.
"""

from __future__ import annotations

import functools
import unittest

from .case import HOST


def classification(device: str) -> str:
    """Returns the name of the classification of the cases for a device."""
    return "CPU" if device.partition(":")[0] == HOST else "ACCELERATOR"


@functools.cache
def class_of(name: str) -> type[unittest.TestCase] | None:
    """Returns a class with the classification of this name; None before torch 2.14."""
    from torch.testing._internal import common_utils

    known = getattr(common_utils, "HardwareClassification", None)
    if known is None:
        return None
    return type("Conformance", (unittest.TestCase,), {"hw_classification": known[name]})
