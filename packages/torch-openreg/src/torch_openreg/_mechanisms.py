# SPDX-License-Identifier: BSD-3-Clause
"""The list of integration mechanisms, and the registration of the ones in Python.

``openreg_aten`` has the list of the ones in C++. It checks the names in
``OPENREG_DISABLE``; the ones here are also entry points of the group
``openreg.mechanisms``, where it finds them.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from torch_openreg import _settings


class Mechanism(NamedTuple):
    """An extension point of PyTorch that this backend uses.

    Attributes:
        name: Its name in ``OPENREG_DISABLE``.
        summary: Its name in PyTorch.
        without: The features that stop working without it.
        source: The file that registers it, in ``packages`` of the project's sources;
            empty if it is planned.
        state: Whether it was registered in this process, was left out, or is planned:
            PyTorch offers it, and this version does not use it yet.
    """

    name: str
    summary: str
    without: str
    source: str
    state: Literal["on", "off", "planned"]

    @property
    def enabled(self) -> bool:
        """Whether it was registered in this process."""
        return self.state == "on"


# In the order of their registration: name, what PyTorch calls it, what stops working
# without it, file.
_TABLE = (
    (
        "autoload",
        'entry point group "torch.backends"',
        "import torch alone does not register the device",
        "__init__.py",
    ),
    (
        "rename",
        "torch.utils.rename_privateuse1_backend",
        "the device is called privateuseone and is not an accelerator",
        "_registration.py",
    ),
    (
        "device_module",
        "torch._register_device_module",
        "no torch.openreg; creating a tensor fails",
        "_registration.py",
    ),
    (
        "methods",
        "torch.utils.generate_methods_for_privateuse1_backend",
        "no x.openreg() or x.is_openreg",
        "_registration.py",
    ),
    (
        "multiprocessing",
        "torch.multiprocessing: reductions of tensors",
        "tensors cannot be sent through queues and pipes",
        "_sharing.py",
    ),
    (
        "fake_tensor",
        "torch._subclasses.fake_impls.register_op_impl",
        "fake convolutions in channels_last are contiguous; real ones are not",
        "_fake_tensor.py",
    ),
    (
        "autocast",
        "torch.autocast, with the rules of openreg-amp",
        "no mixed precision",
        "_registration.py",
    ),
    (
        "process_group",
        "torch.distributed.Backend.register_backend",
        "no collectives",
        "_registration.py",
    ),
    (
        "symmetric_memory",
        "c10d::symmetric_memory::register_allocator",
        "no torch.distributed._symmetric_memory",
        "_registration.py",
    ),
    (
        "activity_profiler",
        "libkineto::IActivityProfiler, REGISTER_PRIVATEUSE1_PROFILER",
        "torch.profiler shows no device times",
        "_registration.py",
    ),
    (
        "device_interface",
        "torch._dynamo.device_interface.register_interface_for_device",
        "Dynamo and Inductor have no streams or device properties",
        "_registration.py",
    ),
    (
        "inductor",
        "torch._inductor.codegen.common.register_backend_for_device",
        'torch.compile works only with backend="aot_eager" or "eager"',
        "_registration.py",
    ),
    (
        "dynamo_backend",
        "torch._dynamo.register_backend",
        'no torch.compile(backend="openreg")',
        "_registration.py",
    ),
    (
        "aoti_runner",
        "torch::inductor::RegisterAOTIModelRunner",
        "AOTInductor packages cannot be loaded for the device",
        "_registration.py",
    ),
    (
        "aoti_eager",
        "torch.library.Library._impl_with_aoti_compile",
        "Inductor cannot compile operators for eager mode",
        "_registration.py",
    ),
)
_FOLDER = "torch-openreg/src/torch_openreg"

_OFF_AS_CUDA = frozenset(
    {
        # for PrivateUse1 only
        "rename",
        "methods",
        # PyTorch has CUDA's
        "device_module",
        "autocast",
        "device_interface",
        "process_group",  # openreg-cuda registers it as nccl
        # the name cuda is not a backend of torch.compile
        "dynamo_backend",
        # PyTorch compiles this out for CUDA
        "aoti_eager",
        # not supported yet
        "symmetric_memory",
    }
)

# Extension points that this version does not use: name, PyTorch API, features that do
# not work. docs/mechanisms/planned.md shows the failure of each.
_PLANNED: tuple[tuple[str, str, str], ...] = ()


def is_enabled(name: str) -> bool:
    """Returns whether the mechanism of this name is on."""
    import openreg_runtime

    if name in _OFF_AS_CUDA and openreg_runtime.is_cuda():
        return False
    return not _settings.is_disabled(name)


def mechanisms() -> list[Mechanism]:
    """Lists the extension points of PyTorch that the device uses.

    Returns:
        One entry for each mechanism: mechanisms in C++ by name, mechanisms in Python
        in the order of their registration, then planned mechanisms. An entry is off
        if the environment variable ``OPENREG_DISABLE``, a list of names separated by
        commas, named it when torch was imported.
    """
    from openreg_aten import _C

    rows = [
        *_C.mechanisms(),
        *((*row[:3], f"{_FOLDER}/{row[3]}", is_enabled(row[0])) for row in _TABLE),
    ]
    return [
        *(Mechanism(*row[:4], "on" if row[4] else "off") for row in rows),
        *(Mechanism(*row, "", "planned") for row in _PLANNED),
    ]
