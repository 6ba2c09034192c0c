# SPDX-License-Identifier: BSD-3-Clause
"""What autocast asks of a backend, also when the rules are not there."""

from __future__ import annotations

import torch

from torch_openreg import __version__
from torch_openreg._mechanisms import is_enabled


class _NoTypes(list[torch.dtype]):
    """No type, and a reason.

    ``torch.autocast`` looks a type up in the supported ones only when it is enabled.
    Raised then, the reason leaves ``enabled=False`` usable, which PyTorch itself uses
    in checkpoints, among others.
    """

    def __init__(self, reason: str) -> None:
        super().__init__()
        self._reason = reason

    def __contains__(self, dtype: object) -> bool:
        raise RuntimeError(self._reason)


def get_amp_supported_dtype() -> list[torch.dtype]:
    """Returns the types that autocast can use on the device: float16 and bfloat16.

    ``torch.autocast`` calls this. Without the rules the list is empty, and looking for
    a type in it raises a RuntimeError that says how to get them.
    """
    if not is_enabled("autocast"):
        return _NoTypes(
            "Autocast on openreg is left out: OPENREG_DISABLE names autocast"
        )
    try:
        import openreg_amp
    except ModuleNotFoundError as error:
        if error.name != "openreg_amp":
            raise
        return _NoTypes(
            "Autocast on openreg needs openreg-amp, which is not installed: "
            f"pip install openreg-amp=={__version__}"
        )
    dtypes: list[torch.dtype] = openreg_amp.get_amp_supported_dtype()
    return dtypes
