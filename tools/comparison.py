# SPDX-License-Identifier: BSD-3-Clause
"""Writes docs/comparison.md: the names of other devices' modules against ours.

The names come from the torch that is installed:

    python tools/comparison.py          # write the page
    python tools/comparison.py --check  # fail if the page is not that of this torch

A name that ``torch.openreg`` lacks has its reason here. A missing reason is an error, and
so is one for a name that is there.
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
# Compared with other devices

Every public name of `torch.cuda`, `torch.xpu`, `torch.mps` and `torch.accelerator` in torch {version}, and what
`torch.openreg` has for it: {have} names are there, {planned} are not there yet, and {other} do not apply.
[torch.openreg](python.md) explains the names that are there. `tools/comparison.py` writes this page, and fails for a name
without an answer.

`torch.accelerator` itself serves the device; "by `torch.accelerator`" means that its function or class works on openreg. All
of them do, also the class `Graph`, whose implementation is the mechanism [`graph`](mechanisms/graph.md).

| name | cuda | xpu | mps | accelerator | openreg | |
| --- | --- | --- | --- | --- | --- | --- |
{rows}
"""

# What is to come. Every other reason is one why a name does not apply.
PLANNED = "not yet"

_ALLOCATOR = "the caching allocator cannot be bypassed, switched off or replaced"
_CLOSED = "PyTorch does not offer it to us, as a [program](mechanisms/closed.md#memory_pools) shows"
_LEGACY = "legacy types; use `dtype=` and `device=`"
_SENSOR = "a simulated device has no sensor for it"
_COMPILER = "the kernels are the CPU's, which no device compiler made"
_LIBRARY = "a library of NVIDIA's, of which the device has no counterpart"
_RUNTIME = "the runtime is the package `openreg-runtime`, with errors of its own"
_METAL = "Metal is the language of another device"

REASONS: dict[str, tuple[str, str]] = {
    # ---- planned
    # ---- closed to a device that is not PyTorch's own
    **dict.fromkeys(
        ["MemPool", "graph_pool_handle", "make_graphed_callables", "use_mem_pool"],
        ("no", _CLOSED),
    ),
    # ---- by another name
    "current_allocated_memory": ("no", "`memory_allocated`, as in `torch.cuda`"),
    "driver_allocated_memory": ("no", "`memory_reserved`, as in `torch.cuda`"),
    "recommended_max_memory": ("no", "`mem_get_info`, as in `torch.cuda`"),
    "max_memory_cached": ("no", "deprecated for `max_memory_reserved`"),
    "memory_cached": ("no", "deprecated for `memory_reserved`"),
    "reset_max_memory_allocated": ("no", "deprecated for `reset_peak_memory_stats`"),
    "reset_max_memory_cached": ("no", "deprecated for `reset_peak_memory_stats`"),
    "has_half": ("no", "deprecated; the device has float16"),
    **dict.fromkeys(
        ["get_sync_debug_mode", "set_sync_debug_mode"],
        ("no", "`torch_openreg.testing.assert_no_host_sync` finds more"),
    ),
    # ---- what a simulated device does not have
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
        ("no", "`Graph` of `torch.accelerator`"),
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
    "sparse": ("no", "a module of such types; sparse tensors work"),
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
        "the error itself, with a note of where the call was made",
    ),
    **dict.fromkeys(["compile_shader", "load_metallib"], ("no", _METAL)),
}


def names(module: ModuleType) -> set[str]:
    """Returns the public names of a module of torch."""
    return set(module.__all__)


def order(name: str) -> tuple[str, str]:
    """Sorts names as in a dictionary, always in the same way."""
    return name.lower(), name


def answer(name: str) -> tuple[str, str]:
    """Returns what our module has for a name: yes, not yet or no, and why.

    Raises:
        ValueError: If the name has no answer, or a reason although it is there.
    """
    if name in names(torch.get_device_module("openreg")):
        if name in REASONS:
            raise ValueError(f"torch.openreg has {name} now: delete its reason")
        return "yes", ""
    if name in REASONS:
        return REASONS[name]
    if name in names(torch.accelerator):
        return "yes", "by `torch.accelerator`"
    raise ValueError(f"torch.openreg has no {name}, and REASONS does not say why")


def page() -> str:
    """Returns the whole page.

    Raises:
        ValueError: If a name has no answer, or a reason is for no name.
    """
    known = set().union(*map(names, MODULES))
    if unknown := REASONS.keys() - known:
        raise ValueError(f"REASONS names what torch has not: {sorted(unknown)}")
    answers = {name: answer(name) for name in sorted(known, key=order)}
    counts = [verdict for verdict, _ in answers.values()]
    rows = []
    for name, (verdict, reason) in answers.items():
        marks = ("yes" if name in names(module) else "" for module in MODULES)
        rows.append(f"| `{name}` | {' | '.join(marks)} | {verdict} | {reason} |")
    return TEXT.format(
        version=torch.__version__.split("+")[0],
        have=counts.count("yes"),
        planned=counts.count(PLANNED),
        other=counts.count("no"),
        rows="\n".join(rows),
    )


if __name__ == "__main__":
    sys.exit(main(__doc__.splitlines()[0], PAGE, page))
