# SPDX-License-Identifier: BSD-3-Clause
"""Types of the compiled module."""

from collections.abc import Callable
from types import TracebackType
from typing import Self

import torch

launcher: object  # a capsule, for generated kernels

def set_observer(
    observer: Callable[[str, int, list[tuple[torch.Tensor, bool]]], None] | None,
) -> None: ...
def register_eager_runner() -> None: ...
def register_runner() -> None: ...
def empty_strided(
    size: tuple[int, ...],
    stride: tuple[int, ...],
    dtype: torch.dtype,
    device_index: int,
    /,
) -> torch.Tensor: ...

class DeviceGuard:
    def __init__(self, device_index: int, /) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...

class GraphResults:
    def __init__(self, tensors: list[torch.Tensor], /) -> None: ...
    def keep_live(self) -> None: ...
    def give(self) -> list[torch.Tensor]: ...
