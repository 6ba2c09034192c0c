# SPDX-License-Identifier: BSD-3-Clause
"""Triton, which would search for the driver of a GPU."""

from __future__ import annotations

import sys
from typing import Any

from openreg_cuda._loading import Finder
from openreg_cuda._refused import Refusal

_DRIVER = "triton.backends.nvidia.driver"


def replace() -> None:
    """Refuses Triton kernels of the program, if it has Triton."""
    if _DRIVER in sys.modules:
        _refuse(sys.modules[_DRIVER])
    else:
        Finder(_DRIVER, lambda: None, _refuse)


def _refuse(driver: Any) -> None:
    driver.CudaDriver.__init__ = Refusal(
        "Triton kernels",
        "they need a GPU. torch.compile generates C++ kernels for PyTorch's operators",
    )
