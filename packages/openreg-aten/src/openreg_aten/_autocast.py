# SPDX-License-Identifier: BSD-3-Clause
"""The autocast hook of the device module. The rules are in openreg-amp."""

from __future__ import annotations

import sys

import torch

from openreg_aten import _versions


class NoTypes(list[torch.dtype]):
    """An empty list of dtypes whose lookup raises an error.

    ``torch.autocast`` looks up a dtype only if it is enabled. ``enabled=False``, which
    PyTorch itself uses, for example in checkpoints, therefore still works.
    """

    def __init__(self, reason: str) -> None:
        super().__init__()
        self._reason = reason

    def __contains__(self, dtype: object) -> bool:
        raise RuntimeError(self._reason)


def get_amp_supported_dtype() -> list[torch.dtype]:
    """Returns the autocast dtypes of openreg-amp, if it was imported.

    Without openreg-amp, the list is empty, and looking up a dtype raises a RuntimeError
    that explains how to install the rules.
    """
    rules = sys.modules.get("openreg_amp")
    if rules is None:
        return NoTypes(
            "Autocast on privateuseone needs openreg-amp, which is not imported: "
            f"pip install openreg-amp=={_versions.OWN_VERSION}, and import openreg_amp"
        )
    dtypes: list[torch.dtype] = rules.get_amp_supported_dtype()
    return dtypes
