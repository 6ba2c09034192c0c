# SPDX-License-Identifier: BSD-3-Clause
"""How many models call an operator: what the ranking of failures goes by."""

from __future__ import annotations

RARE = 0.01


def share_of(name: str) -> float:
    """The share of models that call an operator of PyTorch's database.

    Args:
        name: Its full name, such as ``"nn.functional.relu"``.
    """
    from .usage_table import SHARES

    return SHARES.get(name, RARE)
