# SPDX-License-Identifier: BSD-3-Clause
"""The table of ``torch.cuda``'s names is complete and true."""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
from collections import Counter
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
import torch
import torch.cuda.comm

import torch_openreg.openreg
from openreg_cuda import _names, _refused, _table
from support.programs import ROOT

ROWS = _table.names()
REFUSED = [row for row in ROWS if row.kind == "refused"]
KERNEL = "template <typename T> T f(T x) { return x; }"


def modules() -> Iterator[str]:
    yield "torch.cuda"
    for module in pkgutil.walk_packages(torch.cuda.__path__, "torch.cuda."):
        yield module.name


def public_names(name: str) -> set[str]:
    module = importlib.import_module(name)

    def is_own(each: str) -> bool:
        value = getattr(module, each)
        if each.startswith("_") or each == "TYPE_CHECKING":
            return False
        if isinstance(value, ModuleType):
            return value.__name__ == f"{name}.{each}"
        home = getattr(value, "__module__", None)
        listed = each in getattr(module, "__all__", ())
        return listed or home is None or home.startswith("torch.cuda")

    return {each for each in dir(module) if is_own(each)}


@pytest.mark.parametrize("module", [*modules()])
def test_no_name_is_missing(module: str) -> None:
    listed = {row.name for row in ROWS if row.module == module}
    assert public_names(module) <= listed
    for name in listed:
        assert hasattr(importlib.import_module(module), name)


def test_counterparts_exist() -> None:
    for row in ROWS:
        if row.kind == "served" and row.text.startswith("torch.openreg."):
            value: object = torch_openreg.openreg
            for part in row.text.split(".")[2:]:
                value = getattr(value, part)


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: f"{row.module}.{row.name}")
def test_a_refused_name_says_why(row: _table.Name) -> None:
    value = getattr(importlib.import_module(row.module), row.name)
    if isinstance(value, ModuleType):
        assert all(
            each.kind == "refused" or each.name.isupper()
            for each in ROWS
            if each.module == value.__name__
        )
        return
    with pytest.raises(NotImplementedError, match="on a simulated CUDA device: "):
        _use(row, value)


def _use(row: _table.Name, value: Any) -> None:
    """Uses a refused name as a program would."""
    uses: dict[str, Callable[[], object]] = {
        "CUDAPluggableAllocator": lambda: torch._C._cuda_customAllocator(0, 0),
        "GdsFile": lambda: value(__file__, os.O_RDONLY),
        "GreenContext": lambda: value.create(num_sms=1),
        "change_current_allocator": lambda: torch._C._cuda_changeCurrentAllocator(None),
        "gds_deregister_buffer": lambda: value(torch.UntypedStorage(4)),
        "gds_register_buffer": lambda: value(torch.UntypedStorage(4)),
    }
    if row.module == "torch.cuda.jiterator":
        outputs = [2] if "multi" in row.name else []
        value(KERNEL, *outputs)(torch.ones(2, device="cuda"))
    elif row.name in uses:
        uses[row.name]()
    else:
        parameters = inspect.signature(value).parameters.values()
        value(*(1 for each in parameters if each.default is each.empty))


def test_the_guide_has_the_counts_of_the_table() -> None:
    page = (ROOT / "docs" / "cuda.md").read_text()
    kinds = ("served", "constant", "refused")
    for module in {row.module for row in ROWS}:
        rows = Counter(row.kind for row in ROWS if row.module == module)
        counts = " | ".join(str(rows[kind]) for kind in kinds)
        assert f"| `{module}` | {counts} |" in page
    served, constant, refused = map(_table.counts().get, kinds)
    assert (
        f"Of {len(ROWS)} names, {served} are served, {constant} are constant and "
        f"{refused} are refused" in page
    )


def test_every_refused_name_of_the_compiled_module_raises() -> None:
    for name, value in _names.NAMES.items():
        if isinstance(value, _refused.Refusal):
            with pytest.raises(NotImplementedError, match=f"torch._C.{name}: not"):
                value(1, 2, key=3)


def test_the_names_of_the_compiled_module_are_there() -> None:
    for name, value in _names.NAMES.items():
        if name not in ("_nvtx", "_cudart"):
            assert getattr(torch._C, name) is value, name


def test_modules_that_come_first_have_the_real_bases() -> None:
    # Not the dummies that torch.cuda defines in a CPU build.
    assert issubclass(torch.cuda.Stream, torch.Stream)
    assert issubclass(torch.cuda.Event, torch.Event)
    assert torch.cuda.streams.Stream is torch.cuda.Stream
    assert torch.cuda.graphs.CUDAGraph is torch.cuda.CUDAGraph
    assert issubclass(torch.cuda.CUDAGraph, torch._C._CUDAGraph)
    assert torch.backends.cuda.is_built()
