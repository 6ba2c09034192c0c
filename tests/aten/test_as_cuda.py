# SPDX-License-Identifier: BSD-3-Clause
"""``OPENREG_DEVICE=cuda`` gives the devices the place of CUDA devices in PyTorch."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import torch

from support.programs import NO_AUTOLOAD, Program, run, variables
from support.versions import needs_a_cpu_build

CHECKS = Path(__file__).parent / "as_cuda" / "checks.py"

# In the program, so that openreg-cuda, which may be installed, does not see it.
AS_CUDA = "import os; os.environ['OPENREG_DEVICE'] = 'cuda'"

# Imports openreg_aten before pytest, whose plugins may import torch. pytest reads
# neither settings nor plugins of the other tests.
RUN_CHECKS = f"""
{AS_CUDA}
import sys
import openreg_aten
import pytest
options = ["-q", "--noconftest", "-c", os.devnull, "-p", "no:pytest_openreg"]
sys.exit(pytest.main([*sys.argv[1:], *options]))
"""


@needs_a_cpu_build
@pytest.mark.timeout(300)
def test_checks_pass() -> None:
    ended = run(
        *(sys.executable, "-c", RUN_CHECKS, CHECKS),
        environment=variables(
            **NO_AUTOLOAD, OPENREG_HALF_IN_FLOAT32="0", PYTHONDONTWRITEBYTECODE="1"
        ),
        seconds=300,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


@needs_a_cpu_build
def test_the_default_leaves_the_place_of_cuda_free(run_python: Program) -> None:
    ended = run_python("""
        import openreg_aten, torch
        assert openreg_aten.device_type() == "privateuseone"
        assert torch.ones(2, device="privateuseone").sum() == 2
        assert not torch._C._dispatch_has_kernel_for_dispatch_key(
            "aten::empty.memory_format", "CUDA")
        try:
            torch.ones(2, device="cuda")
        except AssertionError as error:
            print(error)
    """)
    assert ended.stdout == "Torch not compiled with CUDA enabled\n", ended.stderr


def test_a_wrong_value_is_rejected_before_anything_is_registered(
    run_python: Program,
) -> None:
    ended = run_python(
        """
        import torch
        try:
            import openreg_aten
        except Exception as error:
            print(error)
        assert not torch._C._dispatch_has_kernel_for_dispatch_key(
            "aten::empty.memory_format", "PrivateUse1")
        """,
        OPENREG_DEVICE="gpu",
    )
    assert (
        "environment variable OPENREG_DEVICE='gpu' is not valid: expected openreg or "
        "cuda" in ended.stdout
    ), ended.stderr


@needs_a_cpu_build
def test_torch_cannot_be_imported_first(run_python: Program) -> None:
    ended = run_python(f"{AS_CUDA}; import torch, openreg_aten")
    assert ended.returncode == 1
    assert "RuntimeError: OPENREG_DEVICE=cuda needs openreg-cuda" in ended.stderr
    how = r"install openreg-cuda==|import openreg_cuda before torch"
    assert re.search(how, ended.stderr)


@pytest.mark.parametrize(
    ("cuda", "hip", "expected"),
    [
        ("12.8", None, "torch 9.9 is built for cuda 12.8"),
        (None, "6.4", "torch 9.9 is built for hip 6.4"),
    ],
)
def test_a_torch_for_gpus_is_refused(
    run_python: Program,
    tmp_path: Path,
    cuda: str | None,
    hip: str | None,
    expected: str,
) -> None:
    (tmp_path / "version.py").write_text(f"__version__ = '9.9'\n{cuda=}\n{hip=}\n")
    ended = run_python(f"""
        import _openreg_early
        from pathlib import Path
        _openreg_early._refuse_gpus(Path({str(tmp_path)!r}))
    """)
    assert expected in ended.stderr
    assert "install a CPU build" in ended.stderr


@pytest.mark.skipif(torch.version.cuda is None, reason="this torch has no CUDA")
def test_the_installed_torch_for_gpus_is_refused(run_python: Program) -> None:
    ended = run_python(f"{AS_CUDA}; import openreg_aten")
    assert ended.returncode == 1
    expected = f"torch {torch.__version__} is built for cuda {torch.version.cuda}"
    assert expected in ended.stderr


@needs_a_cpu_build
def test_a_machine_with_a_gpu_is_refused(run_python: Program) -> None:
    ended = run_python("""
        import _openreg_early
        _openreg_early._GPUS = ("nul[k-m]",)
        _openreg_early.load()
    """)
    assert "would hide the GPU of this machine, which has /dev/null" in ended.stderr
