# SPDX-License-Identifier: BSD-3-Clause
"""The least device module that PyTorch needs, for the name ``privateuseone``.

Torch looks the module up by the device's name when it first makes a tensor.
torch-openreg, which renames the device, brings the full one.
"""

from __future__ import annotations

import types

import torch
from torch.utils.backend_registration import rename_privateuse1_backend

from openreg_aten import _C, _autocast, _versions

_DEFAULT_NAME = "privateuseone"


def register() -> None:
    """Registers the module unless the backend has a name, and so a module, already."""
    renamed = torch._C._get_privateuse1_backend_name() != _DEFAULT_NAME
    if renamed or hasattr(torch, _DEFAULT_NAME):
        return
    module = types.ModuleType(f"torch.{_DEFAULT_NAME}", __doc__)
    for name in (
        "current_device",
        "device_count",
        "is_initialized",
        "set_device",
        "synchronize",
    ):
        setattr(module, name, getattr(_C, name))
    module.is_available = _is_available  # type: ignore[attr-defined]
    module._lazy_init = _lazy_init  # type: ignore[attr-defined]
    module._is_in_bad_fork = _C.is_in_bad_fork  # type: ignore[attr-defined]
    module.manual_seed_all = _manual_seed_all  # type: ignore[attr-defined]
    module.get_amp_supported_dtype = _autocast.get_amp_supported_dtype  # type: ignore[attr-defined]
    module.__getattr__ = _missing  # type: ignore[method-assign]
    torch._register_device_module(_DEFAULT_NAME, module)  # type: ignore[no-untyped-call]


def _missing(name: str) -> object:
    """Says where the rest of the names is."""
    raise AttributeError(
        f"module 'torch.{_DEFAULT_NAME}' has no attribute {name!r}; the full module "
        "comes with torch-openreg: "
        f"pip install torch-openreg=={_versions.OWN_VERSION}"
    )


def _lazy_init() -> None:
    """Starts the devices; called by torch before it makes the first tensor.

    Backward passes and pinned memory need torch's notion of an accelerator, which
    PrivateUse1 becomes by being named. A backend that nobody named until its first use
    keeps the default name.
    """
    _C.init()
    if torch._C._get_privateuse1_backend_name() == _DEFAULT_NAME:
        rename_privateuse1_backend(_DEFAULT_NAME)


def _is_available() -> bool:
    """Reports whether there is a device."""
    return _C.device_count() > 0


def _manual_seed_all(seed: int) -> None:
    """Seeds the default generator of every device, as ``torch.manual_seed`` asks."""
    for device in range(_C.device_count()):
        _C.default_generator(device).manual_seed(int(seed))
