# SPDX-License-Identifier: BSD-3-Clause
"""The minor version of torch, on which tables of this package depend."""

from __future__ import annotations

import torch

_MINOR = tuple(int(part) for part in torch.__version__.split(".")[:2])


def since(minor: tuple[int, int], *values: str) -> tuple[str, ...]:
    """Returns the values in this minor version of torch and later, else none."""
    return values if minor <= _MINOR else ()


def before(minor: tuple[int, int], *values: str) -> tuple[str, ...]:
    """Returns the values in earlier minor versions of torch, else none."""
    return values if minor > _MINOR else ()
