# SPDX-License-Identifier: BSD-3-Clause
"""Completes ``torch.cuda`` after the import of torch, and starts the devices."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import torch

import torch_openreg
from openreg_cuda import (
    _devices,
    _distributed,
    _flags,
    _profiler,
    _properties,
    _settings,
    _storage,
    _tensor_types,
    _trace,
    _triton,
    _utilities,
)
from openreg_cuda._backend import compiled, openreg
from openreg_cuda._loading import SimulationWarning

_completed = False

_WARNING = (
    "CUDA is simulated (OPENREG_DEVICE=cuda). CPU kernels compute the results; flags "
    "of TF32, cuDNN and cuBLAS have no effect; the name, capability and memory of the "
    "devices are invented; Triton kernels and CUDA extensions are not available; "
    "measured times are not related to a GPU"
)


def complete() -> None:
    """Registers the device and replaces functions that a CPU build lacks, once."""
    global _completed
    if _completed:
        return
    _completed = True
    torch_openreg.register()
    from torch_openreg import _lines

    _lines.add_library(Path(__file__).parent)
    version: Any = torch.version
    version.cuda = _devices.version()
    _distributed.replace()
    _flags.replace()
    _profiler.replace()
    _storage.replace()
    _tensor_types.replace()
    _trace.replace()
    _triton.replace()
    _utilities.replace()
    if _settings.reports():
        from openreg_cuda import _report

        _report.watch()


def start() -> None:
    """Starts the devices. ``torch.cuda`` calls it before their first use."""
    openreg().init()
    cuda: Any = torch.cuda
    count = compiled().device_count()
    cuda.default_generators = tuple(map(compiled().default_generator, range(count)))
    cuda._get_device_properties = _properties.properties
    _warn()


def _warn() -> None:
    from torch_openreg._lines import user_place

    place = user_place(0)
    file, line = ("<unknown>", 0) if place is None else place
    warnings.warn_explicit(_WARNING, SimulationWarning, file, line)
