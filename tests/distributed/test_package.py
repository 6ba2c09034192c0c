# SPDX-License-Identifier: BSD-3-Clause
"""The package itself: its registration, what it imports, and the example."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
import torch.distributed as dist

import openreg_distributed
from support.programs import ROOT
from support.ranks import run_ranks
from support.versions import since

PROJECT = ROOT / "packages" / "openreg-distributed" / "pyproject.toml"
EXAMPLE = ROOT / "examples" / "distributed" / "train.py"


def test_registration_names_the_device():
    openreg_distributed.register()
    openreg_distributed.register()
    device = torch._C._get_privateuse1_backend_name()
    assert dist.Backend.backend_capability["occl"] == [device]
    assert dist.Backend.default_device_backend_map[device] == "occl"


def test_registration_loads_nothing_else(run_python):
    result = run_python(
        """
        import sys
        import openreg_distributed
        openreg_distributed.register()
        names = [name.split(".") for name in sys.modules]
        print(sorted(x[1] for x in names if x[0] == "openreg_distributed" and x[1:]))
        """
    )
    assert result.returncode == 0, result.stderr
    # Symmetric memory is C++; gloo and the engine are for groups.
    assert result.stdout == "['_C', '_libraries', '_registration', '_settings']\n"


WITHOUT_A_NAME = """
import torch
import torch.distributed as dist
dist.init_process_group({}store=dist.HashStore(), rank=0, world_size=1)
x = torch.ones(2, device="openreg")
dist.all_reduce(x)
print(x.tolist(), dist.get_backend_config(), dist.get_backend())
dist.destroy_process_group()
"""


@pytest.mark.differs_in_process("occl")
@pytest.mark.parametrize(
    ("given", "backend"),
    [("", "undefined"), ("device_id=torch.device('openreg', 0), ", "occl")],
)
def test_a_group_that_names_no_backend_has_occl(run_python, given, backend):
    source = WITHOUT_A_NAME.format(given)
    result = run_python(source, TORCH_DEVICE_BACKEND_AUTOLOAD="1")
    assert result.returncode == 0, result.stderr
    assert result.stdout == f"[1.0, 1.0] openreg:occl {backend}\n"
    assert result.stderr == ""


@pytest.mark.differs_in_process("occl")
def test_without_torch_openreg_the_device_keeps_its_first_name(run_python):
    result = run_python(
        """
        import datetime
        import openreg_aten
        import openreg_distributed
        import torch
        import torch.distributed as dist
        openreg_distributed.register()
        dist.init_process_group("occl", store=dist.HashStore(), rank=0, world_size=1)
        x = torch.ones(2, device="privateuseone")
        dist.all_reduce(x)
        print(x.tolist(), dist.get_backend())
        dist.destroy_process_group()
        """,
        TORCH_DEVICE_BACKEND_AUTOLOAD="0",
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == "[1.0, 1.0] occl\n"


NAMED_ONLY = """
import torch
import torch.distributed as dist
dist.init_process_group("occl", store=dist.HashStore(), rank=0, world_size=1)
x = torch.ones(2, device="privateuseone")
dist.all_reduce(x)
print(x.tolist(), dist.get_backend())
dist.destroy_process_group()
"""


@since(2, 14)
@pytest.mark.differs_in_process("occl")
def test_the_name_is_enough_without_an_import(run_python):
    result = run_python(NAMED_ONLY, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert result.returncode == 0, result.stderr
    assert result.stdout == "[1.0, 1.0] occl\n"


@since(2, 14)
def test_a_disabled_backend_is_not_found_by_its_name(run_python):
    result = run_python(
        NAMED_ONLY,
        TORCH_DEVICE_BACKEND_AUTOLOAD="0",
        OPENREG_DISABLE="process_group",
    )
    assert result.returncode == 1
    assert "entry point occl did not register a backend" in result.stderr


def test_the_function_of_the_entry_point_registers_the_backend(run_python):
    # Loaded from its file: the metadata of an editable install may be older.
    result = run_python(
        """
        import tomllib
        from importlib import import_module
        from pathlib import Path
        import torch.distributed as dist
        project = tomllib.loads(Path(PATH).read_text(encoding="utf-8"))["project"]
        (entry,) = project["entry-points"]["torch.distributed.backends"].items()
        module, _, function = entry[1].partition(":")
        getattr(import_module(module), function)()
        print(entry[0], dist.Backend.backend_capability["occl"])
        """.replace("PATH", repr(str(PROJECT))),
        TORCH_DEVICE_BACKEND_AUTOLOAD="0",
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == "occl ['privateuseone']\n"


GROUP_OF_ONE = """
import torch
import torch.distributed as dist
dist.init_process_group("cpu:gloo,openreg:occl", store=dist.HashStore(), world_size=1,
                        rank=0)
x = torch.ones(2, device="openreg")
dist.all_reduce(x)
print(x.tolist())
dist.destroy_process_group()
"""


def test_devices_in_other_processes_are_refused_when_a_group_is_made(run_python):
    result = run_python(
        GROUP_OF_ONE, OPENREG_ISOLATION="process", TORCH_DEVICE_BACKEND_AUTOLOAD="1"
    )
    assert result.returncode == 1
    assert result.stdout == ""
    assert "in init_process_group" in result.stderr
    assert "RuntimeError: occl needs device memory in the process" in result.stderr
    assert "OPENREG_ISOLATION=process" in result.stderr.splitlines()[-1]


def test_operators_as_messages_are_no_obstacle(run_python):
    result = run_python(
        GROUP_OF_ONE, OPENREG_ISOLATION="loopback", TORCH_DEVICE_BACKEND_AUTOLOAD="1"
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == "[1.0, 1.0]\n"


def test_missing_package_is_named_with_its_pip_command(run_python):
    result = run_python(
        """
        import sys
        import torch.distributed as dist
        import openreg_distributed
        sys.modules["openreg_aten"] = None  # simulates a missing package
        openreg_distributed.register()
        dist.init_process_group("occl", store=dist.HashStore(), rank=0, world_size=1)
        """
    )
    assert result.returncode == 1
    assert "pip install openreg-aten==" in result.stderr.splitlines()[-1]


def test_another_torch_is_refused():
    with pytest.raises(RuntimeError, match=r"built for torch 2\.1.*, but torch 9"):
        openreg_distributed._libraries.select(openreg_distributed.__path__, "9.0")


def wrong_tensors(rank: int) -> None:
    backend = dist.group.WORLD._get_backend(torch.device("openreg"))
    with pytest.raises(RuntimeError, match="needs tensors of openreg devices"):
        backend.broadcast([torch.ones(2)], dist.BroadcastOptions())
    with pytest.raises(TypeError, match="not <class 'int'>"):
        dist.new_group([0], backend="occl", pg_options=1)


@pytest.mark.differs_in_process("occl")
def test_wrong_tensors_and_options_are_refused():
    run_ranks(wrong_tensors, 1, backend="occl")


def split(rank: int) -> float:
    from torch.distributed.device_mesh import init_device_mesh

    openreg_distributed.register()
    dist.init_process_group(
        "occl",
        device_id=torch.device("openreg", 0),
    )
    mesh = init_device_mesh("openreg", (2, 2), mesh_dim_names=("rows", "columns"))
    tensor = torch.full((2,), float(rank), device="openreg")
    dist.all_reduce(tensor, group=mesh["columns"].get_group())
    total = tensor.tolist()[0]
    dist.destroy_process_group()
    return total


@pytest.mark.differs_in_process("occl")
def test_a_group_that_is_bound_to_a_device_can_be_split():
    assert run_ranks(split, 4, backend=None) == [1.0, 1.0, 5.0, 5.0]


@pytest.mark.differs_in_process("occl")
def test_the_example_runs_with_torchrun():
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [sys.executable, *command, str(EXAMPLE)],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "ranks: 2, loss below 1: True\n"
