# SPDX-License-Identifier: BSD-3-Clause
"""Registers the backend and symmetric memory in ``torch.distributed``.

torch-openreg imports this module during ``import torch``, perhaps while the parent
package is still being imported.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from types import FrameType

    from torch._C._distributed_c10d import Backend

_NAME = "occl"


def register() -> None:
    """Registers this package for the device's present name.

    Groups that do not name a backend then use occl for device tensors, and
    ``torch.distributed._symmetric_memory`` allocates device memory. Further calls do
    nothing. If torch-openreg is installed, ``import torch`` has already called this
    function.

    Raises:
        RuntimeError: If torch was built without ``torch.distributed``.
    """
    register_backend()
    register_symmetric_memory()


def register_backend() -> None:
    """Registers only the backend, which the first group loads."""
    from torch import distributed

    if not distributed.is_available():
        raise RuntimeError("occl needs torch.distributed, which this torch lacks")
    device = torch._C._get_privateuse1_backend_name()
    backend = distributed.Backend
    if backend.backend_capability.get(_NAME) == [device]:
        return
    backend.register_backend(_NAME, _create, extended_api=True, devices=[device])


def register_named_backend() -> None:
    """Registers the backend for ``init_process_group("occl")``, without an import.

    torch 2.14 and later find this function through an entry point. PyTorch reports an
    error if ``OPENREG_DISABLE`` leaves the backend out.
    """
    import openreg_aten  # noqa: F401  (defines OPENREG_DISABLE and the device)
    import openreg_runtime

    if "process_group" not in openreg_runtime.setting("OPENREG_DISABLE").names:
        register_backend()


def register_symmetric_memory() -> None:
    """Registers the allocator of symmetric memory, which is C++ code."""
    from openreg_distributed import _C

    _C.register_symmetric_memory()


def _create(options: Any, backend_options: Any) -> Backend:
    """Creates the backend of a group for ``torch.distributed``."""
    from openreg_distributed import _engine

    _set_default_backend(sys._getframe(1))
    return _engine.create(options, backend_options)


def _set_default_backend(caller: FrameType) -> None:
    """Makes occl the default backend of a group that does not name a backend.

    Without NCCL, PyTorch makes gloo the default, which DistributedDataParallel does not
    find: "Could not find backend type 1". At this point only the calling PyTorch
    function has a reference to the group.
    """
    group = caller.f_locals.get("pg")
    if caller.f_locals.get("backend") == "undefined" and group is not None:
        group._set_default_backend(type(group).BackendType.CUSTOM)
