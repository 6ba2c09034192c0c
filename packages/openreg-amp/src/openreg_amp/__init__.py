# SPDX-License-Identifier: BSD-3-Clause
"""Autocast for PrivateUse1 devices, with the operator lists PyTorch uses on CUDA.

Importing the package registers the rules. Import it after the backend, because it adds
a function for ``torch.autocast`` to the backend's device module. With OpenReg devices,
``OPENREG_DISABLE=autocast`` leaves the rules out.
"""

from __future__ import annotations

import sys
from importlib import metadata

from . import _libraries

_libraries.select(__path__, metadata.version("torch"))  # before torch is loaded

import torch  # noqa: E402

from . import _C, _higher_order  # noqa: E402

__all__ = ["get_amp_supported_dtype", "rules"]


def _is_enabled() -> bool:
    """Reads the settings if this process uses OpenReg devices.

    PyTorch itself registers the rules for CUDA.
    """
    runtime = sys.modules.get("openreg_runtime")
    return runtime is None or (
        "autocast" not in runtime.setting("OPENREG_DISABLE").names
        and not runtime.is_cuda()
    )


_enabled = _is_enabled()


def rules() -> list[tuple[str, str]]:
    """Lists the autocast rules that are registered.

    Returns:
        Pairs of a qualified operator (``"aten::mm"``, ``"aten::pow.Scalar"``) and
        its policy: ``lower_precision_fp``, ``fp32``, ``fp32_set_opt_dtype``,
        ``fp32_append_dtype``, ``promote`` (see ``ATen/autocast_mode.h``) or
        ``banned``. Empty if ``OPENREG_DISABLE`` names ``autocast``, or with
        ``OPENREG_DEVICE=cuda``.
    """
    return _C.rules() if _enabled else []


def get_amp_supported_dtype() -> list[torch.dtype]:
    """Lists the dtypes in which autocast may compute; ``torch.autocast`` calls it.

    Returns:
        float16 and bfloat16. Empty if ``OPENREG_DISABLE`` names ``autocast``:
        ``torch.autocast`` then warns and stays off.
    """
    return [torch.float16, torch.bfloat16] if _enabled else []


def _attach() -> None:
    """Adds the function for ``torch.autocast`` to the backend's device module."""
    module = getattr(torch, torch._C._get_privateuse1_backend_name(), None)
    if module is not None and not hasattr(module, "get_amp_supported_dtype"):
        module.get_amp_supported_dtype = get_amp_supported_dtype


if _enabled:
    _C.register_autocast()
    _higher_order.register_fallthrough()
_attach()
