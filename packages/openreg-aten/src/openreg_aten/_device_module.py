# SPDX-License-Identifier: BSD-3-Clause
"""The minimal device module that PyTorch needs, for the name ``privateuseone``.

PyTorch looks up the module by the device name when it creates the first tensor.
torch-openreg renames the device and registers the full module.
"""

from __future__ import annotations

import types

import torch
from torch.utils.backend_registration import rename_privateuse1_backend

import openreg_runtime
from openreg_aten import _C, _autocast, _versions

_DEFAULT_NAME = "privateuseone"


def register() -> None:
    """Registers the module, unless the backend already has a name and thus a module.

    CUDA devices have a module, ``torch.cuda``. openreg-cuda makes it complete. Without
    it, the minimal functions replace functions that need a build for CUDA.
    """
    if openreg_runtime.is_cuda():
        if not hasattr(torch._C, "_cuda_init"):
            _fill(torch.cuda)
        return
    renamed = torch._C._get_privateuse1_backend_name() != _DEFAULT_NAME
    if renamed or hasattr(torch, _DEFAULT_NAME):
        return
    module = types.ModuleType(f"torch.{_DEFAULT_NAME}", __doc__)
    _fill(module)
    module.get_amp_supported_dtype = _autocast.get_amp_supported_dtype  # type: ignore[attr-defined]
    module.__getattr__ = _missing  # type: ignore[method-assign]
    torch._register_device_module(_DEFAULT_NAME, module)  # type: ignore[no-untyped-call]


def _fill(module: types.ModuleType) -> None:
    functions = {
        "current_device": _C.current_device,
        "device_count": _C.device_count,
        "is_initialized": _C.is_initialized,
        "set_device": _C.set_device,
        "synchronize": _synchronize,
        "is_available": _is_available,
        "_lazy_init": _lazy_init,
        "_is_in_bad_fork": _C.is_in_bad_fork,
        "manual_seed_all": _manual_seed_all,
    }
    for name, function in functions.items():
        setattr(module, name, function)


def _missing(name: str) -> object:
    """Raises an error that names the package with the full module."""
    raise AttributeError(
        f"module 'torch.{_DEFAULT_NAME}' has no attribute {name!r}; the full module "
        "comes with torch-openreg: "
        f"pip install torch-openreg=={_versions.OWN_VERSION}"
    )


def _lazy_init() -> None:
    """Starts the devices. PyTorch calls it before it creates the first tensor.

    Backward passes and pinned memory need an accelerator, and PrivateUse1 becomes one
    only when it is renamed. A backend without a name at its first use is therefore
    renamed to the default name.
    """
    _C.init()
    if _C.device_type() == _DEFAULT_NAME:
        rename_privateuse1_backend(_DEFAULT_NAME)


def _synchronize(device: int | None = None) -> None:
    """Waits for all streams of a device, by default the current one."""
    _C.synchronize(_C.current_device() if device is None else device)


def _is_available() -> bool:
    """Returns whether a device exists."""
    return _C.device_count() > 0


def _manual_seed_all(seed: int) -> None:
    """Seeds the default generator of every device, for ``torch.manual_seed``."""
    for device in range(_C.device_count()):
        _C.default_generator(device).manual_seed(int(seed))
