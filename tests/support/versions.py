# SPDX-License-Identifier: BSD-3-Clause
"""Skips tests of things that the installed torch does not have yet."""

from __future__ import annotations

import pytest
import torch

MINOR = ".".join(torch.__version__.split(".")[:2])
TORCH = tuple(int(part) for part in MINOR.split("."))


def since(major: int, minor: int) -> pytest.MarkDecorator:
    """Skips a test on versions of torch before this one."""
    old = (major, minor) > TORCH
    return pytest.mark.skipif(old, reason=f"torch < {major}.{minor}")


needs_a_cpu_build = pytest.mark.skipif(
    torch.version.cuda is not None,
    reason="a CUDA build of torch has its own kernels",
)
