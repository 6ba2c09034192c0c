# SPDX-License-Identifier: BSD-3-Clause
"""``torch.compile`` with Inductor for OpenReg devices.

``register()`` tells PyTorch of it, which torch-openreg does by itself. What it is made
of is loaded when a program imports ``torch._dynamo`` or ``torch._inductor``.
"""

from __future__ import annotations

import torch

from openreg_inductor._build import TORCH_VERSION as _BUILT_FOR
from openreg_inductor._registration import register

__all__ = ["register"]


def _check_torch_version(built_for: str, found: str) -> None:
    """Compares two versions of torch; ``+cpu`` and the like do not count.

    Args:
        built_for: The version this package was compiled against.
        found: The version that is installed.

    Raises:
        RuntimeError: If they differ; what is used of Inductor is private to a version.
    """
    if found.partition("+")[0] != built_for:
        raise RuntimeError(
            f"openreg-inductor was built for torch {built_for}, but torch {found} is "
            f"installed. Install that torch: pip install torch=={built_for}; or build "
            f"openreg-inductor again for torch {found}."
        )


_check_torch_version(_BUILT_FOR, torch.__version__)
