# SPDX-License-Identifier: BSD-3-Clause
"""Whether a call draws random numbers, which are those of each device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .tally import attempt


class _Watch(TorchDispatchMode):
    """Notes whether an operator has PyTorch's tag for random results."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.seen |= torch.Tag.nondeterministic_seeded in func.tags
        return func(*args, **(kwargs or {}))


def draws(run: Callable[[str], Any]) -> bool:
    """Calls a function with ``"cpu"``, and tells whether it draws random numbers."""
    with _Watch() as watch:
        attempt(lambda: run("cpu"))
    return watch.seen
