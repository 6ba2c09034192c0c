# SPDX-License-Identifier: BSD-3-Clause
"""The package itself: what it imports, what it registers, what it relies on."""

from __future__ import annotations

import importlib
import re
from types import CodeType

import pytest
import torch

import openreg_inductor
from support.versions import MINOR


def test_import_of_torch_imports_no_compiler(run_python):
    result = run_python(
        """
        import sys
        import torch
        import openreg_inductor
        openreg_inductor.register()
        torch.ones(2, device="openreg").sum().item()
        loaded = [n for n in sys.modules if n.startswith("openreg_inductor")]
        print(sorted(loaded))
        compilers = ("torch._dynamo", "torch._inductor")
        print([n for n in sys.modules if n.startswith(compilers)])
        """
    )
    assert result.returncode == 0, result.stderr
    loaded, compilers = result.stdout.splitlines()
    own = ["_C", "_aoti", "_libraries", "_registration", "_source"]
    names = [f"openreg_inductor.{name}" for name in own]
    assert loaded == str(["openreg_inductor", *names])
    assert compilers == "[]"


def test_another_torch_is_refused():
    with pytest.raises(RuntimeError, match=r"built for torch 2\.1.*, but torch 9"):
        openreg_inductor._libraries.select(openreg_inductor.__path__, "9.0")


def test_registration_after_the_compilers_is_at_once(run_python):
    result = run_python(
        """
        import torch
        import torch._inductor.compile_fx
        import torch_openreg
        from torch._dynamo.device_interface import get_interface_for_device
        from torch._inductor.codegen import common
        print(get_interface_for_device("openreg:1").__module__)
        print(common.get_scheduling_for_device("openreg").__module__)
        print("openreg" in torch._dynamo.list_backends())
        """,
        TORCH_DEVICE_BACKEND_AUTOLOAD="0",
    )
    assert result.returncode == 0, result.stderr
    modules = ["openreg_inductor._interface", "openreg_inductor._scheduling", "True"]
    assert result.stdout.split() == modules


def test_interface_is_of_the_devices():
    from torch._dynamo.device_interface import get_interface_for_device

    interface = get_interface_for_device("openreg")
    assert interface.is_available()
    assert interface.device_count() == torch.openreg.device_count()
    assert interface.Stream is torch.openreg.Stream
    assert interface.Event is torch.openreg.Event
    with interface.device(1):
        assert torch.openreg.current_device() == 1
        assert interface.current_stream() == torch.openreg.current_stream(1)
    assert torch.openreg.current_device() == 0
    properties = interface.get_device_properties("openreg:1")
    assert properties.name == torch.openreg.get_device_name(1)
    assert properties.multi_processor_count > 0
    interface.synchronize("openreg:1")
    assert interface.is_dtype_supported(torch.bfloat16)


CHANGED = """
import torch
import inspect
real = inspect.getsource
inspect.getsource = lambda each: real(each) + (
    "# changed" if getattr(each, "__qualname__", "") == {name!r} else ""
)
x = torch.ones(4, device={device!r})
print(torch.compile(lambda x: x.sin() + 1)(x).device)
"""


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("addmm", "decomposition:addmm"),
        ("KernelGroup", "codegen.cpp:KernelGroup"),
    ],
)
def test_changed_source_is_named_and_nothing_is_compiled(run_python, name, path):
    result = run_python(CHANGED.format(name=name, device="openreg"))
    assert result.returncode == 1
    expected = rf"these functions have changed: {path}\. Compiled kernels"
    assert re.search(expected, result.stderr), result.stderr
    # CPU programs compile without changes of this package.
    result = run_python(CHANGED.format(name=name, device="cpu"))
    assert result.returncode == 0, result.stderr
    assert result.stdout == "cpu\n"


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("first", ["cudagraph_trees", "compile_fx"])
def test_graphs_are_captured_whichever_module_is_imported_first(run_python, first):
    result = run_python(
        f"""
        import torch
        import torch._inductor.{first}
        from torch._dynamo.utils import counters
        x = torch.ones(4, device="openreg")
        compiled = torch.compile(lambda x: x.sin() + 1, mode="reduce-overhead")
        for _ in range(3):
            compiled(x)
        print(counters["inductor"]["openreg_graphs"])
        """
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == "1\n"


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_changed_source_of_graphs_is_named_by_the_mode_that_needs_it(run_python):
    source = CHANGED.format(name="get_manager", device="openreg")
    result = run_python(source)
    assert result.returncode == 0, result.stderr
    result = run_python(source.replace("+ 1)", '+ 1, mode="reduce-overhead")'))
    assert result.returncode == 1
    assert "these functions have changed: cudagraph_trees:get_manager" in result.stderr


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_devices_in_processes_are_refused_by_name(run_python, tmp_path):
    result = run_python(
        """
        import torch
        x = torch.ones(4, device="openreg")
        torch.compile(lambda x: x.sin() + 1)(x)
        """,
        OPENREG_ISOLATION="process",
        TORCHINDUCTOR_CACHE_DIR=str(tmp_path),  # where no kernel is
    )
    assert result.returncode == 1
    assert "OPENREG_ISOLATION=process does not give: set it to" in result.stderr


def _has_replaced(code: CodeType, name: str) -> bool:
    return any(
        _has_replaced(each, name)
        if isinstance(each, CodeType)
        else any(one == name for one in _flat(each))
        for each in code.co_consts
    )


def _flat(constant: object) -> tuple[object, ...]:
    return tuple(constant) if isinstance(constant, tuple | frozenset) else (constant,)


@pytest.mark.slow
def test_each_function_that_is_patched_asks_for_the_device():
    from openreg_inductor import _patches

    importlib.import_module("torch._inductor.compile_fx")
    paths = (*_patches._ASK_FOR_CPP, *_patches._ASK_FOR_CUDA)
    codes = {path: _patches._find(path).__code__ for path in paths}
    assert [path for path in paths if not _has_replaced(codes[path], "openreg")] == []
    for path, asked in _patches._ASK_FOR_GPU.items():
        assert asked in _patches._find(path).__code__.co_names


@pytest.mark.slow
@pytest.mark.filterwarnings(  # an import of torch 2.14 calls it
    "ignore:`torch.jit.script` is deprecated:FutureWarning"
)
def test_sources_of_this_torch_are_known():
    from openreg_inductor import _patches

    sources = {path: _patches._hash(path) for path in _patches.SOURCES}
    assert sources == _patches._known()[MINOR]
