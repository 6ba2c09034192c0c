# SPDX-License-Identifier: BSD-3-Clause
"""Registers the device in Inductor, after its modules are imported and before it runs.

If torch has changed a function that the package relies on, the device is registered
nevertheless, so that each attempt to compile for it raises an error.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn

import torch
from torch._inductor.codegen import common
from torch._inductor.custom_graph_pass import (
    CustomGraphModulePass,
    get_hash_for_files,
)

from openreg_aten._C import device_type
from openreg_inductor import _patches
from openreg_inductor._source import FOLDER


class _Pass(CustomGraphModulePass):
    """The device's graph pass, which is part of the keys of Inductor's caches."""

    def __init__(
        self, device: str, decompose: Callable[[torch.fx.GraphModule, str], None]
    ) -> None:
        self.device = device
        self.decompose = decompose

    def __call__(self, gm: torch.fx.GraphModule) -> None:
        """Decomposes calls that have no template for the device."""
        self.decompose(gm, self.device)

    def uuid(self) -> tuple[str, bytes]:
        """The version, and a hash of all files that generated code depends on."""
        folder = Path(__file__).parent
        files = sorted([*folder.glob("*.py"), *FOLDER.glob("*.h")])
        return metadata.version("openreg-inductor"), get_hash_for_files(
            tuple(str(file) for file in files)
        )


def register() -> None:
    """Patches Inductor's functions and registers the code generators."""
    device = device_type()
    try:
        _patches.apply(device)
    except _patches.UpstreamChangedError as error:
        _Refusal.error = error
        refused: Any = _Refusal("Refused", (), {})
        common.register_backend_for_device(device, refused, refused, refused)
        return
    # They use functions that were checked above.
    from openreg_inductor import (
        _aoti,
        _cpp_wrapper,
        _dense_attention,
        _overrides,
        _scheduling,
        _wrapper,
    )

    _aoti.enable(device)
    common.get_device_op_overrides("cpu")  # PyTorch registers its own first
    common.register_device_op_overrides(device, _overrides.Overrides())
    common.register_backend_for_device(
        device,
        _scheduling.Scheduling,
        _wrapper.Wrapper,
        _cpp_wrapper.CppWrapper,
        device_custom_pass=_Pass(device, _dense_attention.decompose),
    )


class _Refusal(type):
    """The metaclass of a placeholder for a code generator."""

    error: Exception

    @property
    def supports_caching(cls) -> NoReturn:
        """The first attribute that Inductor reads."""
        raise _Refusal.error
