# SPDX-License-Identifier: BSD-3-Clause
"""The functions that autocast calls in a backend, also without the rules."""

from __future__ import annotations

import torch

from openreg_aten._autocast import NoTypes
from torch_openreg import __version__
from torch_openreg._mechanisms import is_enabled


def get_amp_supported_dtype() -> list[torch.dtype]:
    """Returns the dtypes that autocast supports on the device: float16 and bfloat16.

    ``torch.autocast`` calls it. Without the rules the list is empty, and looking for a
    dtype in it raises a RuntimeError with installation instructions.
    """
    if not is_enabled("autocast"):
        return NoTypes(
            "Autocast on openreg is left out: OPENREG_DISABLE names autocast"
        )
    try:
        import openreg_amp
    except ModuleNotFoundError as error:
        if error.name != "openreg_amp":
            raise
        return NoTypes(
            "Autocast on openreg needs openreg-amp, which is not installed: "
            f"pip install openreg-amp=={__version__}"
        )
    dtypes: list[torch.dtype] = openreg_amp.get_amp_supported_dtype()
    return dtypes
