# SPDX-License-Identifier: BSD-3-Clause
"""The device is loaded before torch, and only if it is asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.programs import Program, run, variables

USES = """
x = torch.ones(2, device="cuda")
assert x.device.type == "cuda" and x.is_cuda and torch.cuda.is_available()
print((x + 1).tolist())
"""


@pytest.mark.parametrize(
    "first",
    [
        "import torch",
        "import openreg_cuda, torch",
        "import torch_openreg, torch",
        "import openreg_aten, torch",
        "from torch import nn; import torch",
    ],
)
def test_any_first_import_gives_the_device(interpreter: Program, first: str) -> None:
    ended = interpreter(f"{first}\n{USES}")
    assert ended.stdout == "[2.0, 2.0]\n", ended.stderr


def test_the_import_after_torch_is_refused(interpreter: Program) -> None:
    source = """
        import os
        del os.environ["OPENREG_DEVICE"]
        import torch
        os.environ["OPENREG_DEVICE"] = "cuda"
        import importlib, openreg_cuda
        importlib.reload(openreg_cuda)
    """
    ended = interpreter(source, OPENREG_DEVICE="openreg")
    assert "torch was imported before openreg_cuda" in ended.stderr
    assert "import openreg_cuda before torch" in ended.stderr


def test_nothing_happens_without_the_variable(interpreter: Program) -> None:
    source = """
        import sys, torch
        assert not torch.cuda.is_available() and torch.version.cuda is None
        assert not hasattr(torch._C, "_cuda_getDeviceCount")
        print(torch.ones(2, device="openreg").tolist())
        print(sorted(x for x in sys.modules if x.startswith("openreg_cuda")))
    """
    ended = interpreter(source, OPENREG_DEVICE="openreg")
    loaded = "['openreg_cuda', 'openreg_cuda._loading']"
    assert ended.stdout.splitlines() == ["[1.0, 1.0]", loaded], ended.stderr


def test_the_first_use_warns_once(interpreter: Program) -> None:
    source = """
        import openreg_cuda, torch
        torch.ones(2)
        x = torch.ones(2, device="cuda")
        y = torch.ones(2, device="cuda:1")
        torch.cuda.synchronize()
    """
    ended = interpreter(source)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.count("SimulationWarning: CUDA is simulated") == 1
    assert ":4: SimulationWarning" in ended.stderr


@pytest.mark.parametrize(
    ("asked", "version"), [("", "None"), ("12.8", "12.8"), ("13.0", "13.0")]
)
def test_the_cuda_version_is_none_unless_asked(
    interpreter: Program, asked: str, version: str
) -> None:
    source = "import openreg_cuda, torch; print(torch.version.cuda)"
    ended = interpreter(source, OPENREG_CUDA_VERSION=asked)
    assert ended.stdout.strip() == version, ended.stderr


def test_a_wrong_version_is_refused(interpreter: Program) -> None:
    ended = interpreter("import openreg_cuda, torch", OPENREG_CUDA_VERSION="new")
    assert "expected a version such as 12.8, got 'new'" in ended.stderr


@pytest.fixture
def as_cuda() -> Callable[..., object]:
    """Runs ``python -m openreg_cuda`` without the variable."""
    return lambda *arguments: run(
        *(sys.executable, "-m", "openreg_cuda", *arguments), environment=variables()
    )


def test_the_command_runs_a_script(
    as_cuda: Callable[..., object], tmp_path: Path
) -> None:
    (tmp_path / "neighbor.py").write_text("NAME = 'found'\n")
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, torch, neighbor\n"
        "print(__name__, neighbor.NAME, sys.argv[1:], torch.cuda.is_available())\n"
    )
    ended = as_cuda(script, "-x", "1")
    assert ended.stdout == "__main__ found ['-x', '1'] True\n", ended.stderr


def test_the_command_runs_a_module(as_cuda: Callable[..., object]) -> None:
    ended = as_cuda("-m", "torch.utils.collect_env")
    assert "Is CUDA available: True" in ended.stdout, ended.stderr


@pytest.mark.parametrize("arguments", [[], ["-m"], ["-x"]])
def test_the_command_shows_its_usage(
    as_cuda: Callable[..., object], arguments: list[str]
) -> None:
    ended = as_cuda(*arguments)
    assert ended.returncode == 2
    assert ended.stderr.startswith("usage: python -m openreg_cuda")


def test_the_report_lists_lines_to_change(
    as_cuda: Callable[..., object], tmp_path: Path
) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import torch\n"
        "x = torch.ones(2).cuda()\n"
        "for _ in range(3):\n"
        "    torch.cuda.synchronize()\n"
        "with torch.cuda.stream(torch.cuda.Stream()):\n"
        "    torch.cuda.Event().record()\n"
        "torch.nn.Linear(2, 2).cuda()\n"
        "torch.cuda.nvtx.mark('only for CUDA')\n"
        "torch.randn(2, device='cuda')\n"
    )
    ended = as_cuda("report", script)
    assert ended.returncode == 0, ended.stderr
    report = ended.stderr.partition("openreg_cuda: calls")[2]
    for name, number, instead in (
        ("Module.cuda", 7, "Module.to(device)"),
        ("Tensor.cuda", 2, "Tensor.to(device)"),
        ("torch.cuda.Event", 6, "torch.Event"),
        ("torch.cuda.Stream", 5, "torch.Stream"),
        ("torch.cuda.stream", 5, "the stream as a context manager"),
        ("torch.cuda.synchronize", 4, "torch.accelerator.synchronize"),
    ):
        lines = report.partition(f"  {name}: use {instead}\n")[2].splitlines()
        assert lines[0].startswith(f"    {script}:{number}: ")
    assert "torch.cuda.synchronize() (3 times)" in report
    assert "nvtx" not in report


def test_disabled_backends_leave_torch_as_it_is(interpreter: Program) -> None:
    source = "import torch; print(torch.cuda.is_available(), torch._C._has_cuda)"
    ended = interpreter(source, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert ended.stdout == "False False\n", ended.stderr
    source = "import openreg_cuda; openreg_cuda.enable()"
    ended = interpreter(source, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert "TORCH_DEVICE_BACKEND_AUTOLOAD must be 1 or unset" in ended.stderr


def test_settings_that_were_read_before_are_refused(interpreter: Program) -> None:
    source = """
        import openreg_cuda, openreg_runtime
        openreg_runtime.settings()
        openreg_cuda.enable()
    """
    ended = interpreter(source, OPENREG_DEVICE="openreg")
    assert "openreg_runtime was imported first" in ended.stderr


LATE = """
import os, sys
import torch
os.environ.update(OPENREG_DEVICE="cuda", TORCH_DEVICE_BACKEND_AUTOLOAD="1")
"""


@pytest.fixture
def late(interpreter: Program) -> Program:
    """Runs source after torch, where Python has read no ``.pth`` file for CUDA."""
    return lambda source: interpreter(
        LATE + source, OPENREG_DEVICE="openreg", TORCH_DEVICE_BACKEND_AUTOLOAD="0"
    )


def test_a_second_import_is_refused_like_the_first(late: Program) -> None:
    ended = late(
        "for _ in range(2):\n"
        "    try:\n"
        "        import openreg_cuda\n"
        "    except ImportError as error:\n"
        "        print(error)\n"
    )
    first, second = ended.stdout.splitlines()
    assert first == second
    assert "torch was imported before openreg_cuda" in first


def test_openreg_aten_names_the_package_to_import_before_torch(late: Program) -> None:
    ended = late("import openreg_aten")
    reason = "needs openreg-cuda, which loads the device before torch: "
    assert f"{reason}import openreg_cuda before torch" in ended.stderr
    ended = late("sys.modules['openreg_cuda'] = None\nimport openreg_aten")
    assert f"{reason}install openreg-cuda==" in ended.stderr
