# SPDX-License-Identifier: BSD-3-Clause
"""Loads openreg-aten's library before torch, for ``OPENREG_DEVICE=cuda``.

``import torch._C`` looks up the hooks of CUDA once and keeps them. The library must be
loaded before, and therefore without torch. This is a top-level package, because the
import of ``openreg_aten`` imports torch. openreg-cuda calls ``load()`` when
``torch._C`` is looked up; ``openreg_aten`` does so if it is imported before torch.
"""

from __future__ import annotations

import ctypes
import runpy
import sys
from importlib import metadata, util
from pathlib import Path

__all__ = ["is_loaded", "load"]

_SETTING = "OPENREG_DEVICE=cuda"
_GPUS = ("nvidia[0-9]*", "dxg")  # files of /dev; dxg is that of WSL
_loaded = False


def is_loaded() -> bool:
    """Returns whether ``load()`` has loaded the library."""
    return _loaded


def load() -> None:
    """Loads PyTorch's CPU library and the device's libraries; later calls do nothing.

    Raises:
        RuntimeError: If torch was built for a GPU, the machine has one, torch is
            already imported, or openreg-aten has no library for this torch.
        ModuleNotFoundError: If torch is not installed.
    """
    global _loaded
    if _loaded:
        return
    torch = _folders("torch")[0]
    _refuse_gpus(torch)
    if "torch._C" in sys.modules:
        how = f"install openreg-cuda=={metadata.version('openreg-aten')}"
        if util.find_spec("openreg_cuda"):  # and Python has not read its .pth file
            how = "import openreg_cuda before torch"
        raise RuntimeError(
            f"{_SETTING} needs openreg-cuda, which loads the device before torch: {how}"
        )
    library = _find_library()
    import libopenreg

    ctypes.CDLL(str(torch / "lib" / _file("torch_cpu")), mode=ctypes.RTLD_GLOBAL)
    libopenreg.load()
    ctypes.CDLL(str(library))
    _loaded = True


def _refuse_gpus(torch: Path) -> None:
    """Raises an error if torch has kernels for CUDA, or a real GPU would be hidden."""
    version = runpy.run_path(str(torch / "version.py"))
    for name in ("cuda", "hip"):
        if version.get(name):
            raise RuntimeError(
                f"{_SETTING} needs a torch built for the CPU, but torch "
                f"{version['__version__']} is built for {name} {version[name]}: "
                "install a CPU build"
            )
    for path in (path for name in _GPUS for path in Path("/dev").glob(name)):
        raise RuntimeError(
            f"{_SETTING} would hide the GPU of this machine, which has {path}: unset "
            "OPENREG_DEVICE"
        )


def _find_library() -> Path:
    minor = "_".join(metadata.version("torch").split(".")[:2])
    for folder in _folders("openreg_aten"):
        library = folder / f"torch_{minor}" / "lib" / _file("openreg_aten")
        if library.exists():
            return library
    raise RuntimeError(
        f"openreg-aten has no library for torch {metadata.version('torch')}"
    )


def _folders(package: str) -> list[Path]:
    """Returns the folders of a package, without importing it."""
    spec = util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"{package} is not installed", name=package)
    return [Path(folder) for folder in spec.submodule_search_locations]


def _file(library: str) -> str:
    return f"lib{library}.{'dylib' if sys.platform == 'darwin' else 'so'}"
