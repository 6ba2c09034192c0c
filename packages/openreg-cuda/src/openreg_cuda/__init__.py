# SPDX-License-Identifier: BSD-3-Clause
"""The OpenReg device as ``cuda``, for programs that name CUDA.

The package has no effect unless the environment variable ``OPENREG_DEVICE`` is
``cuda``. A ``.pth`` file of the wheel then imports it when Python starts, because the
device must be loaded before ``torch._C``. Where ``.pth`` files are not read, the
program must import it, or call :func:`enable`, before it imports torch.
``python -m openreg_cuda`` sets the variable and runs a program.
"""

from __future__ import annotations

import os

from openreg_cuda import _loading
from openreg_cuda._loading import SimulationWarning

__all__ = ["SimulationWarning", "enable"]


def enable() -> None:
    """Simulates CUDA in this process and in the processes that it starts.

    Sets ``OPENREG_DEVICE=cuda``. Later calls do nothing.

    Raises:
        ImportError: If torch is imported already, or openreg-runtime has read the
            variable with another value.
        RuntimeError: If ``TORCH_DEVICE_BACKEND_AUTOLOAD`` disables backends.
    """
    if not _loading.is_autoload_enabled():
        raise RuntimeError(
            "TORCH_DEVICE_BACKEND_AUTOLOAD must be 1 or unset to simulate CUDA, got "
            f"{os.environ['TORCH_DEVICE_BACKEND_AUTOLOAD']!r}"
        )
    _loading.prepare()
    os.environ["OPENREG_DEVICE"] = "cuda"


def _autoload() -> None:
    """Completes ``torch.cuda`` when torch is imported (``torch.backends``)."""
    if _is_wanted():
        _loading.complete()


def _is_wanted() -> bool:
    # As the .pth file: no package is loaded for programs that do not want CUDA.
    is_cuda = os.environ.get("OPENREG_DEVICE") == "cuda"
    return is_cuda and _loading.is_autoload_enabled()


if _is_wanted():
    _loading.prepare()
