# SPDX-License-Identifier: BSD-3-Clause
"""Integrations have no effect until enabled, can be undone, and report errors."""

from __future__ import annotations

import pytest

from .conftest import Run

# Python then finds no module of this name, as if it were not installed.
WITHOUT = """
import sys
sys.modules["{library}"] = None
from torch_openreg.integrations import {library}
{library}.enable()
"""


@pytest.mark.parametrize("library", ["accelerate", "deepspeed", "lightning"])
def test_missing_library_is_a_clear_error(run: Run, library: str) -> None:
    ended = run("-c", WITHOUT.format(library=library))
    assert ended.returncode == 1
    expected = f"needs the package {library}, which is not installed: pip install"
    assert expected in ended.stderr


def test_torch_openreg_imports_no_library(run: Run) -> None:
    source = (
        "import sys, torch_openreg.integrations\n"
        "print(sorted({'accelerate', 'deepspeed', 'lightning'} & set(sys.modules)))"
    )
    assert run("-c", source).stdout == "[]\n"


def test_accelerate_is_changed_until_disabled(run: Run) -> None:
    source = """
import inspect
from accelerate import Accelerator, PartialState, accelerator
from torch_openreg.integrations import accelerate as integration

def functions():
    return [
        PartialState.__dict__["_prepare_backend"], PartialState.__dict__["set_device"],
        PartialState.__dict__["default_device"], accelerator.get_grad_scaler,
        accelerator.save_accelerator_state, accelerator.load_accelerator_state,
        Accelerator.__init__.__code__,
    ]

before = functions()
assert not integration.is_enabled()  # importing it changes nothing
integration.disable()  # and neither does this
integration.enable()
integration.enable()
assert integration.is_enabled()
assert not any(new is old for new, old in zip(functions(), before))
print(Accelerator(mixed_precision="fp16").device)
integration.disable()
assert all(new is old for new, old in zip(functions(), before))
PartialState._reset_state()
print(PartialState().device)
"""
    ended = run("-c", source)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "openreg\ncpu\n"


def test_accelerate_keeps_its_settings_while_enabled(run: Run) -> None:
    source = """
from accelerate import PartialState
from torch_openreg.integrations import accelerate
accelerate.enable()
print(PartialState({}).device)
"""
    assert run("-c", source.format("cpu=True")).stdout == "cpu\n"
    named = run("-c", source.format(""), ACCELERATE_TORCH_DEVICE="openreg:1")
    assert named.stdout == "openreg:1\n"


def test_accelerate_that_has_a_device_is_refused(run: Run) -> None:
    source = """
from accelerate import PartialState
from torch_openreg.integrations import accelerate
PartialState()
accelerate.enable()
"""
    ended = run("-c", source)
    assert "accelerate already uses cpu. Call enable() before" in ended.stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            "PartialState.set_device = lambda self, index: None",
            "replaces PartialState.set_device(self), but accelerate",
        ),
        (
            "del PartialState._prepare_backend",
            "no such function",
        ),
        (
            "Accelerator.__init__ = lambda self: None",
            "has 0 lists with cuda and npu there",
        ),
    ],
)
def test_incompatible_accelerate_is_refused_and_unchanged(
    run: Run, change: str, message: str
) -> None:
    source = f"""
from accelerate import Accelerator, PartialState
from torch_openreg.integrations import accelerate
{change}
try:
    accelerate.enable()
finally:
    assert not accelerate.is_enabled()
    print("as it was")
"""
    ended = run("-c", source)
    assert ended.returncode == 1
    assert message in ended.stderr
    assert ended.stdout == "as it was\n"


def test_accelerate_runs_programs_and_modules(run: Run) -> None:
    usage = run("-m", "torch_openreg.integrations.accelerate")
    assert usage.returncode == 1
    assert "usage: python -m torch_openreg.integrations.accelerate" in usage.stderr
    with_module = run(
        "-m", "torch_openreg.integrations.accelerate", "-m", "timeit", "-n1", "-r1"
    )
    assert with_module.returncode == 0, with_module.stderr
    assert "loop" in with_module.stdout


def test_deepspeed_that_is_imported_is_refused(run: Run) -> None:
    source = """
import deepspeed
from torch_openreg.integrations import deepspeed as integration
assert not integration.is_enabled()
integration.enable()
"""
    ended = run("-c", source, DS_ACCELERATOR="cpu")
    assert "deepspeed has been imported, and has chosen another" in ended.stderr


def test_deepspeed_with_more_methods_is_refused(run: Run) -> None:
    source = """
import abc, sys, deepspeed.accelerator.abstract_accelerator as module
del sys.modules["deepspeed"]
for name in [name for name in sys.modules if name.startswith("deepspeed.")]:
    if sys.modules[name] is not module:
        del sys.modules[name]
module.DeepSpeedAccelerator.new_method = abc.abstractmethod(lambda self: None)
module.DeepSpeedAccelerator.__abstractmethods__ |= {"new_method"}
from torch_openreg.integrations import deepspeed as integration
try:
    integration.enable()
finally:
    print(sorted(name for name in sys.modules if name == "deepspeed"))
"""
    ended = run("-c", source, DS_ACCELERATOR="cpu")
    assert "accelerators to have new_method, which openreg's lacks" in ended.stderr
    assert ended.stdout.endswith("[]\n")


def test_deepspeed_builds_extensions_for_the_host_only(run: Run) -> None:
    source = """
from torch_openreg.integrations import deepspeed as integration
integration.enable()
integration.enable()
assert integration.is_enabled()
import deepspeed, torch
from deepspeed.ops import op_builder
accelerator = deepspeed.get_accelerator()
print(accelerator.current_device_name(), accelerator.device_count())
print(accelerator.on_accelerator(accelerator.FloatTensor([1.0])))
print(op_builder.CPUAdamBuilder.__module__)
from deepspeed.ops.adam import FusedAdam
FusedAdam([torch.ones(1, device="openreg", requires_grad=True)])
"""
    ended = run("-c", source)
    assert "FusedAdamBuilder: openreg has no kernels" in ended.stderr
    lines = ended.stdout.splitlines()[-3:]
    assert lines == ["openreg:0 2", "True", "deepspeed.ops.op_builder.cpu.cpu_adam"]


def test_lightning_is_registered_until_undone(run: Run) -> None:
    source = """
import warnings
warnings.simplefilter("ignore")
from lightning.fabric import Fabric
from lightning.pytorch import Trainer
from torch_openreg.integrations import lightning as integration

quiet = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False)
options = dict(accelerator="openreg", strategy="ddp_openreg", devices=2)

def attempt(make):
    try:
        return make()
    except ValueError as error:
        print(str(error).partition(":")[0])

attempt(lambda: Trainer(**options, **quiet))
integration.unregister()
integration.register()
integration.register()
print(Trainer(**options, **quiet).strategy.root_device)
print(Fabric(**options).device)
integration.unregister()
attempt(lambda: Trainer(**options, **quiet))
"""
    ended = run("-c", source)
    assert ended.returncode == 0, ended.stderr
    refused = "You selected an invalid strategy name"
    assert ended.stdout.splitlines() == [refused, "openreg:0", "openreg:0", refused]
