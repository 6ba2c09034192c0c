# SPDX-License-Identifier: BSD-3-Clause
"""What ``torch.autocast`` asks of a backend whose rules are in another package."""

from __future__ import annotations

import sys

import torch

from openreg_aten import _versions


class NoTypes(list[torch.dtype]):
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
    """Lists the types of openreg-amp, if it was imported.

    Without it the list is empty, and looking for a type in it raises a RuntimeError
    that says how to get the rules.
    """
    rules = sys.modules.get("openreg_amp")
    if rules is None:
        return NoTypes(
            "Autocast on privateuseone needs openreg-amp, which is not imported: "
            f"pip install openreg-amp=={_versions.OWN_VERSION}, and import openreg_amp"
        )
    dtypes: list[torch.dtype] = rules.get_amp_supported_dtype()
    return dtypes
