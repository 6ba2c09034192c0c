# SPDX-License-Identifier: BSD-3-Clause
"""The device is registered once after any first import, in any order."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable

import pytest
import torch

import torch_openreg
from support.programs import Program

Output = Callable[..., str]

# Registered once, completely, under one module object, and it computes.
IS_COMPLETE = """
import sys, torch, torch_openreg
assert torch.openreg is torch_openreg.openreg is sys.modules["torch.openreg"]
assert torch.device("privateuseone").type == "openreg"
assert torch.accelerator.current_accelerator().type == "openreg"
assert not hasattr(torch, "privateuseone")
assert torch.ones(2).openreg().is_openreg
assert (torch.ones(2, device="openreg") + 1).tolist() == [2, 2]
assert torch.distributed.Backend.backend_capability["occl"] == ["openreg"]
print("complete")
"""

# Stands for a package that is not installed.
BLOCKER = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name == {package!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocker())
"""


@pytest.fixture
def interpreter(fresh_interpreter: Program) -> Program:
    """Runs source before torch is imported."""
    return fresh_interpreter


ORDERS = [
    "import torch",
    "import torch_openreg",
    "import openreg_aten; import torch_openreg",
    "import openreg_distributed",
    "from torch.openreg import Stream",
]
MORE_ORDERS = [
    "import torch; import torch_openreg",
    "import torch_openreg.openreg",
    "import torch.openreg",
    "import torch.openreg.amp",
    "import openreg_runtime",
    "import openreg_aten",
    "import openreg_amp",
    "import openreg_distributed, torch_openreg",
    "import openreg_inductor",
    "import openreg_inductor, torch_openreg",
    "import openreg_profiler",
    "import openreg_profiler, torch_openreg",
    "import torch.distributed",
    "import torch_openreg; torch_openreg._autoload()",
    "import torch_openreg; torch_openreg.register(); torch_openreg.register()",
    "import torch.nn",
]


@pytest.mark.parametrize(
    "first",
    [*ORDERS, *(pytest.param(each, marks=pytest.mark.slow) for each in MORE_ORDERS)],
)
def test_device_is_complete_after_first_import(output: Output, first: str) -> None:
    assert output(f"{first}\n{IS_COMPLETE}") == "complete"


@pytest.mark.parametrize(
    "first",
    [
        "import torch; import torch_openreg",
        "import torch_openreg; import torch",
        "import openreg_aten; import torch_openreg",
        "import torch; import openreg_amp; import torch_openreg",
    ],
)
def test_explicit_import_is_enough_without_autoload(output: Output, first: str) -> None:
    source = f"{first}\n{IS_COMPLETE}"
    assert output(source, TORCH_DEVICE_BACKEND_AUTOLOAD="0") == "complete"


@pytest.mark.parametrize(
    "switch", [{"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}, {"OPENREG_DISABLE": "autoload"}]
)
def test_without_autoload_torch_is_unchanged(
    output: Output, switch: dict[str, str]
) -> None:
    source = """
    import torch
    print(hasattr(torch, "openreg"), torch._C._get_privateuse1_backend_name())
    import torch_openreg
    torch_openreg.register()
    print(torch.ones(2, device="openreg").device)
    """
    assert output(source, **switch).split() == ["False", "privateuseone", "openreg:0"]


def test_registering_again_changes_nothing() -> None:
    module = torch.openreg
    torch_openreg._autoload()
    torch_openreg.register()
    assert torch.openreg is module


def test_autoload_starts_no_device_and_loads_no_compiler(output: Output) -> None:
    source = """
    import sys, torch
    assert not torch.openreg.is_initialized()
    print([name for name in sys.modules if name.startswith("torch._dynamo")])
    print([name for name in sys.modules if name.startswith("torch._inductor")])
    """
    assert output(source).split() == ["[]", "[]"]


def test_registering_the_process_group_imports_nothing_else(output: Output) -> None:
    source = """
    import sys, torch
    print(*sorted(sys.modules))
    """
    disabled = "process_group,symmetric_memory"
    without = set(output(source, OPENREG_DISABLE=disabled).split())
    package = "openreg_distributed"
    parts = ("_C", "_libraries", "_registration", "_settings")
    more = {package, *(f"{package}.{part}" for part in parts)}
    assert set(output(source).split()) - without == more
    # PyTorch imports this itself, even if no backend is loaded.
    alone = output(source, TORCH_DEVICE_BACKEND_AUTOLOAD="0").split()
    assert "torch.distributed.distributed_c10d" in alone


@pytest.mark.parametrize("name", ["amp", "memory", "random", "streams"])
def test_submodule_import_gives_the_same_module(name: str) -> None:
    imported = importlib.import_module(f"torch.openreg.{name}")
    assert imported is getattr(torch.openreg, name)
    assert imported is sys.modules[f"torch_openreg.openreg.{name}"]


@pytest.mark.parametrize("package", ["openreg_aten", "openreg_runtime"])
def test_missing_package_is_named_with_its_pip_command(
    interpreter: Program, package: str
) -> None:
    blocker = BLOCKER.format(package=package)
    result = interpreter(blocker + "import torch")
    command = f"pip install {package.replace('_', '-')}=={torch_openreg.__version__}"
    assert result.returncode == 1
    assert command in result.stderr
    assert "Failed to load the backend extension: openreg" in result.stderr


def test_missing_package_leaves_torch_as_it_was(output: Output) -> None:
    source = BLOCKER.format(package="openreg_aten") + (
        "import torch\n"
        "print(torch.accelerator.current_accelerator())\n"
        "try:\n"
        "    import torch_openreg\n"
        "except ImportError as error:\n"
        "    print(error.name, torch._C._get_privateuse1_backend_name())\n"
        "    print(torch.accelerator.current_accelerator())\n"
    )
    printed = output(source, TORCH_DEVICE_BACKEND_AUTOLOAD="0").split()
    assert printed[1:3] == ["openreg_aten", "privateuseone"]
    assert printed[3:] == printed[:1], "None, or CUDA of a build for CUDA"


def test_other_backend_under_privateuse1_is_reported(interpreter: Program) -> None:
    source = """
    import torch
    torch.utils.rename_privateuse1_backend("other")
    import torch_openreg
    """
    result = interpreter(source, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert result.returncode == 1
    assert "RuntimeError" in result.stderr
    assert "other" in result.stderr


@pytest.mark.parametrize(
    "first",
    ["", "import openreg_runtime", "torch.utils.rename_privateuse1_backend('other')"],
)
@pytest.mark.parametrize("package", ["torch_openreg", "openreg_aten"])
def test_second_backend_is_refused_before_its_library_is_loaded(
    output: Output, first: str, package: str
) -> None:
    source = f"""
    import sys, torch
    {first}
    library = torch.library.Library("aten", "IMPL")
    library.impl("empty.memory_format", lambda *args, **kwargs: None, "PrivateUse1")
    try:
        import {package}
    except RuntimeError as error:
        print(error)
    print("openreg_aten._C" in sys.modules)
    """
    error, loaded = output(source, TORCH_DEVICE_BACKEND_AUTOLOAD="0").splitlines()
    name = "other" if "rename" in first else "privateuseone"
    assert error.startswith(
        f"openreg-aten cannot be loaded: the backend '{name}' is, and a process has one"
    )
    assert "TORCH_DEVICE_BACKEND_AUTOLOAD=0" in error
    assert loaded == "False"


def test_device_that_was_named_before_is_taken(output: Output) -> None:
    source = """
    import torch
    torch.utils.rename_privateuse1_backend("mine")
    import openreg_aten
    print(openreg_aten.__name__, torch._C._get_privateuse1_backend_name())
    """
    printed = output(source, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert printed.split() == ["openreg_aten", "mine"]
