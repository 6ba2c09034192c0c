# SPDX-License-Identifier: BSD-3-Clause
"""Writes docs/comparison.md: the names in other devices' modules and in torch.openreg.

The names come from the installed torch:

    python tools/comparison.py          # write the page
    python tools/comparison.py --check  # fail if the page is not current for this torch

A name that ``torch.openreg`` lacks has its reason in this file. A missing reason is an
error, and so is a reason for a name that exists.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import torch
import torch.accelerator
import torch.cuda
import torch.mps
import torch.xpu
from pages import main

PAGE = Path(__file__).parents[1] / "docs" / "comparison.md"
MODULES = (torch.cuda, torch.xpu, torch.mps, torch.accelerator)

# ruff: noqa: E501 - lines of a page
TEXT = """\
# Comparison with torch.cuda, torch.xpu and torch.mps

This page is for porting code to `torch.openreg`. It lists every public name of `torch.cuda`, `torch.xpu`, `torch.mps`
and `torch.accelerator` in torch {version}: {have} names work on openreg{planned}, and {other} are not available. The last column gives the
reason or the replacement. [torch.openreg](python.md) describes the available names. `tools/comparison.py` generates
this page, and fails if a name has neither a counterpart nor a reason.

The note "by `torch.accelerator`" means that you call the function or class of `torch.accelerator` directly. All its
names work on openreg, including `Graph`, which the mechanism [`graph`](mechanisms/graph.md) implements.

| name | cuda | xpu | mps | accelerator | openreg | reason or replacement |
| --- | --- | --- | --- | --- | --- | --- |
{rows}
"""

# The verdict for a planned name. The verdict for all other missing names is "no".
PLANNED = "not yet"

_ALLOCATOR = "the caching allocator cannot be bypassed, switched off or replaced"
_CLOSED = "closed to PrivateUse1 backends; see [memory pools](mechanisms/closed.md#tensors-and-memory)"
_LEGACY = "legacy type; use `dtype=` and `device=`"
_SENSOR = "a simulated device has no sensors"
_COMPILER = "the device runs CPU kernels and has no device compiler"
_LIBRARY = "an NVIDIA library without a counterpart on this device"
_RUNTIME = "the runtime is the package `openreg-runtime`, which has its own errors"
_METAL = "Metal shaders run on MPS devices only"

REASONS: dict[str, tuple[str, str]] = {
    # ---- planned
    # ---- closed to out-of-tree devices
    **dict.fromkeys(
        ["MemPool", "graph_pool_handle", "make_graphed_callables", "use_mem_pool"],
        ("no", _CLOSED),
    ),
    # ---- available under another name
    "current_allocated_memory": ("no", "use `memory_allocated`, as in `torch.cuda`"),
    "driver_allocated_memory": ("no", "use `memory_reserved`, as in `torch.cuda`"),
    "recommended_max_memory": ("no", "use `mem_get_info`, as in `torch.cuda`"),
    "max_memory_cached": ("no", "deprecated; use `max_memory_reserved`"),
    "memory_cached": ("no", "deprecated; use `memory_reserved`"),
    "reset_max_memory_allocated": ("no", "deprecated; use `reset_peak_memory_stats`"),
    "reset_max_memory_cached": ("no", "deprecated; use `reset_peak_memory_stats`"),
    "has_half": ("no", "deprecated; the device supports float16"),
    **dict.fromkeys(
        ["get_sync_debug_mode", "set_sync_debug_mode"],
        ("no", "use `torch_openreg.testing.assert_no_host_sync`, which finds more"),
    ),
    # ---- not available on a simulated device
    **dict.fromkeys(
        ["clock_rate", "memory_usage", "power_draw", "temperature"],
        ("no", _SENSOR),
    ),
    "list_gpu_processes": ("no", "a device belongs to one process"),
    **dict.fromkeys(
        [
            "CUDAPluggableAllocator",
            "XPUPluggableAllocator",
            "caching_allocator_alloc",
            "caching_allocator_delete",
            "caching_allocator_disabled",
            "caching_allocator_enable",
            "change_current_allocator",
            "get_allocator_backend",
        ],
        ("no", _ALLOCATOR),
    ),
    **dict.fromkeys(
        ["CUDAGraph", "XPUGraph", "graph", "graphs"],
        ("no", "use `torch.accelerator.Graph`"),
    ),
    **dict.fromkeys(
        [
            f"{dtype}{kind}"
            for dtype in (
                *("BFloat16", "Bool", "Byte", "Char", "ComplexDouble", "ComplexFloat"),
                *("Double", "Float", "Half", "Int", "Long", "Short"),
            )
            for kind in ("Storage", "Tensor")
            if not (dtype.startswith("Complex") and kind == "Tensor")
        ],
        ("no", _LEGACY),
    ),
    "sparse": ("no", "a module of legacy types; sparse tensors work"),
    **dict.fromkeys(["get_gencode_flags", "jiterator", "tunable"], ("no", _COMPILER)),
    **dict.fromkeys(
        [
            "GreenContext",
            "current_blas_handle",
            "current_solver_handle",
            "has_magma",
            "nccl",
            "nvtx",
        ],
        ("no", _LIBRARY),
    ),
    **dict.fromkeys(
        [
            "CudaError",
            "check_error",
            "cudaStatus",
            "cudart",
        ],
        ("no", _RUNTIME),
    ),
    "DeferredCudaCallError": (
        "no",
        "the original error is raised, with a note of where the call was made",
    ),
    **dict.fromkeys(["compile_shader", "load_metallib"], ("no", _METAL)),
}


def names(module: ModuleType) -> set[str]:
    """Returns the public names of a module of torch."""
    return set(module.__all__)


def order(name: str) -> tuple[str, str]:
    """Returns a key that sorts names without regard to case."""
    return name.lower(), name


def answer(name: str) -> tuple[str, str]:
    """Returns a verdict for a name (yes, not yet or no) and the reason.

    Raises:
        ValueError: If the name has no verdict, or has a reason although it exists.
    """
    if name in names(torch.get_device_module("openreg")):
        if name in REASONS:
            raise ValueError(f"torch.openreg has {name} now: delete its reason")
        return "yes", ""
    if name in REASONS:
        return REASONS[name]
    if name in names(torch.accelerator):
        return "yes", "by `torch.accelerator`"
    raise ValueError(f"torch.openreg has no {name}, and REASONS has no entry for it")


def page() -> str:
    """Returns the whole page.

    Raises:
        ValueError: If a name has no verdict, or if torch lacks a name that has a reason.
    """
    known = set().union(*map(names, MODULES))
    if unknown := REASONS.keys() - known:
        raise ValueError(f"torch lacks names in REASONS: {sorted(unknown)}")
    answers = {name: answer(name) for name in sorted(known, key=order)}
    counts = [verdict for verdict, _ in answers.values()]
    planned = counts.count(PLANNED)
    rows = []
    for name, (verdict, reason) in answers.items():
        marks = ("yes" if name in names(module) else "" for module in MODULES)
        rows.append(f"| `{name}` | {' | '.join(marks)} | {verdict} | {reason} |")
    return TEXT.format(
        version=torch.__version__.split("+")[0],
        have=counts.count("yes"),
        planned=f", {planned} are planned" if planned else "",
        other=counts.count("no"),
        rows="\n".join(rows),
    )


if __name__ == "__main__":
    sys.exit(main(__doc__.splitlines()[0], PAGE, page))
