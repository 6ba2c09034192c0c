# SPDX-License-Identifier: BSD-3-Clause
"""Mixed precision: ``torch.amp`` for the device.

The package ``openreg-amp`` contains the rules for operators and dtypes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torch_openreg.openreg._utils import device_type

from ._support import get_amp_supported_dtype

__all__ = [
    "GradScaler",
    "autocast",
    "custom_bwd",
    "custom_fwd",
    "get_amp_supported_dtype",
]


class autocast(torch.amp.autocast):  # noqa: N801  (the name in torch.amp)
    """``torch.autocast("openreg", ...)``. As ``torch.cuda.amp.autocast``.

    Args:
        dtype: The dtype of operators that autocast runs in lower precision, float16 or
            bfloat16; float16 by default.
        enabled: Whether to do anything.
        cache_enabled: Whether a weight is cast only once.

    Raises:
        RuntimeError: If ``openreg-amp`` is not installed.
    """

    def __init__(
        self,
        dtype: torch.dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        super().__init__(device_type(), dtype, enabled, cache_enabled)


class GradScaler(torch.amp.GradScaler):
    """``torch.amp.GradScaler("openreg", ...)``. As ``torch.cuda.amp.GradScaler``.

    Args:
        **kwargs: As for ``torch.amp.GradScaler``, without the device.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(device_type(), **kwargs)


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, cast_inputs: torch.dtype | None = None
) -> Callable[..., Any]:
    """Decorates ``forward`` of an autograd function for use with autocast.

    As ``torch.cuda.amp.custom_fwd``.

    Args:
        fwd: The ``forward`` method.
        cast_inputs: The dtype to which floating-point inputs on the device are cast;
            the method then runs without autocast. By default it uses the caller's
            autocast state.
    """
    decorated: Callable[..., Any] = torch.amp.custom_fwd(
        fwd, device_type=device_type(), cast_inputs=cast_inputs
    )
    return decorated


def custom_bwd(bwd: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Decorates ``backward`` so that it runs with the autocast of its ``forward``.

    As ``torch.cuda.amp.custom_bwd``.

    Args:
        bwd: The ``backward`` method.
    """
    decorated: Callable[..., Any] = torch.amp.custom_bwd(bwd, device_type=device_type())
    return decorated
