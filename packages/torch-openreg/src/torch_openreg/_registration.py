# SPDX-License-Identifier: BSD-3-Clause
"""Registers the device with PyTorch: the name, ``torch.openreg``, methods and more.

This may run during ``import torch``, when ``torch._dynamo`` and ``torch._inductor``
cannot be imported yet. The modules imported here must not need them.
"""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import torch
from torch.utils import backend_registration

from torch_openreg import __version__, _profiles, _settings
from torch_openreg._mechanisms import is_enabled

_NAME = "openreg"
_registered = False


def register() -> None:
    """Registers every mechanism that is not disabled, once per process.

    Raises:
        ImportError: If ``openreg-aten`` is not installed.
        RuntimeError: If another backend uses the PrivateUse1 device, or
            ``OPENREG_SANITIZER`` has an invalid value.
        ValueError: If ``OPENREG_PROFILE`` has an invalid value.
    """
    global _registered
    if _registered:
        return
    # First, because it can fail: then torch is unchanged.
    sanitized = _settings.is_sanitized()
    _profiles.apply()
    _load_backend()
    if is_enabled("rename"):
        backend_registration.rename_privateuse1_backend(_NAME)
    if is_enabled("device_module"):
        _register_device_module()
    if is_enabled("methods"):
        backend_registration.generate_methods_for_privateuse1_backend(for_storage=True)
    if is_enabled("multiprocessing"):
        _register_reductions()
    if is_enabled("fake_tensor"):
        _register_fake_tensor()
    if is_enabled("autocast"):
        _load_autocast_rules()
    if is_enabled("process_group"):
        _register_process_group()
    if is_enabled("symmetric_memory"):
        _register_symmetric_memory()
    if is_enabled("activity_profiler"):
        _register_profiler()
    if is_enabled("rng_graphsafe"):
        _register_graphsafe_generators()
    _register_compilers()
    _registered = True
    profile = _profiles.profile()
    if profile is not None:
        from torch_openreg import _refusals

        _refusals.register(profile, _dispatch_key())
    if sanitized:
        _enable_sanitizer()


def _dispatch_key() -> str:
    """Returns the key of the kernels of the device."""
    import openreg_runtime

    return "CUDA" if openreg_runtime.is_cuda() else "PrivateUse1"


def _enable_sanitizer() -> None:
    from torch_openreg.openreg import sanitizer

    sanitizer.enable()


def _load_backend() -> None:
    try:
        # Imports the submodules by name, because openreg_aten is only partly imported
        # if it was the first import of the process and has imported torch.
        from openreg_aten import _privateuse1

        _privateuse1.check()

        from openreg_aten import _C  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "openreg_aten":
            raise
        raise ImportError(
            "torch-openreg needs openreg-aten, which is not installed: "
            f"pip install openreg-aten=={__version__}",
            name=error.name,
        ) from error


def _register_device_module() -> None:
    from torch_openreg import openreg

    # Replaces the minimal module that openreg_aten registered under the first name.
    vars(torch).pop("privateuseone", None)
    sys.modules.pop("torch.privateuseone", None)

    name = torch._C._get_privateuse1_backend_name()
    torch._register_device_module(name, openreg)  # type: ignore[no-untyped-call]
    # Includes the submodules, because `import torch.openreg.memory` would load a second
    # copy.
    for path, module in list(sys.modules.items()):
        if path.startswith(f"{openreg.__name__}."):
            sys.modules[path.replace(openreg.__name__, f"torch.{name}", 1)] = module


def _register_reductions() -> None:
    from torch_openreg import _sharing

    _sharing.register()


def _register_fake_tensor() -> None:
    from torch_openreg import _fake_tensor

    _fake_tensor.register()


def _register_graphsafe_generators() -> None:
    # openreg_aten registers the generators. torch has already loaded this module.
    from torch._functorch._aot_autograd.utils import register_graphsafe_rng_device_type

    from openreg_aten import _C

    register_graphsafe_rng_device_type(_C.device_type())


def _load_autocast_rules() -> None:
    try:
        import openreg_amp  # noqa: F401
    except ModuleNotFoundError as error:
        # Only autocast needs it, and reports what to install.
        if error.name != "openreg_amp":
            raise


def _register_process_group() -> None:
    if not torch.distributed.is_available():
        return
    try:
        # Imports the submodule by name, as for openreg_aten.
        from openreg_distributed import _registration
    except ModuleNotFoundError as error:
        if error.name != "openreg_distributed":
            raise
        device = torch._C._get_privateuse1_backend_name()
        torch.distributed.Backend.register_backend(
            "occl", _refuse_group, extended_api=True, devices=[device]
        )
    else:
        _registration.register_backend()


def _register_symmetric_memory() -> None:
    if not torch.distributed.is_available():
        return
    try:
        from openreg_distributed import _registration
    except ModuleNotFoundError as error:
        # PyTorch then reports an error, as for other devices.
        if error.name != "openreg_distributed":
            raise
    else:
        _registration.register_symmetric_memory()


def _register_profiler() -> None:
    try:
        # Imports the submodule by name, as for openreg_aten.
        from openreg_profiler import _registration
    except ModuleNotFoundError as error:
        # torch.profiler then shows only the host.
        if error.name != "openreg_profiler":
            raise
    else:
        _registration.register()


def _refuse_group(*_: Any) -> NoReturn:
    raise ImportError(
        "occl needs openreg-distributed, which is not installed: "
        f"pip install openreg-distributed=={__version__}",
        name="openreg_distributed",
    )


def _register_compilers() -> None:
    try:
        # Imports the submodule by name, as for openreg_aten.
        from openreg_inductor import _registration
    except ModuleNotFoundError as error:
        if error.name != "openreg_inductor":
            raise
        _refuse_inductor()
        return
    if is_enabled("device_interface"):
        _registration.register_device_interface()
    if is_enabled("inductor"):
        _registration.register_inductor()
    if is_enabled("dynamo_backend"):
        _registration.register_dynamo_backend()
    if is_enabled("aoti_runner"):
        _registration.register_aoti_runner()
    if is_enabled("aoti_eager"):
        _registration.register_aoti_eager()


class _MissingInductor(type):
    @property
    def supports_caching(cls) -> NoReturn:  # the first attribute that Inductor reads
        raise ImportError(
            "torch.compile with Inductor needs openreg-inductor, which is not "
            f"installed: pip install openreg-inductor=={__version__}",
            name="openreg_inductor",
        )


def _refuse_inductor() -> None:
    """Registers classes that raise an error when Inductor uses them."""
    from torch_openreg import openreg

    for name in (
        "Scheduling",
        "PythonWrapperCodegen",
        "CppWrapperCodegen",
        "WrapperFxCodegen",
    ):
        setattr(openreg, name, _MissingInductor(name, (), {}))
