# SPDX-License-Identifier: BSD-3-Clause
"""The number of models that call an operator, for the ranking of failures."""

from __future__ import annotations

RARE = 0.01


def share_of(name: str) -> float:
    """Returns the share of models that call an operator of PyTorch's database.

    Args:
        name: Its full name, such as ``"nn.functional.relu"``.
    """
    from .usage_table import SHARES

    return SHARES.get(name, RARE)
