# SPDX-License-Identifier: BSD-3-Clause
"""What autocast asks of a backend, also when the rules are not there."""

from __future__ import annotations

import torch

from openreg_aten._autocast import NoTypes
from torch_openreg import __version__
from torch_openreg._mechanisms import is_enabled


def get_amp_supported_dtype() -> list[torch.dtype]:
    """Returns the types that autocast can use on the device: float16 and bfloat16.

    ``torch.autocast`` calls this. Without the rules the list is empty, and looking for
    a type in it raises a RuntimeError that says how to get them.
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
