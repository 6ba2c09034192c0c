# SPDX-License-Identifier: BSD-3-Clause
"""Devices, process groups and checkpoints for Hugging Face's accelerate.

accelerate chooses a device and a backend from a fixed list of devices. :func:`enable`
adds openreg to it, for the whole process::

    from torch_openreg.integrations import accelerate as openreg_accelerate

    openreg_accelerate.enable()
    accelerator = accelerate.Accelerator()

The module runs an unchanged program::

    torchrun --nproc-per-node 2 -m torch_openreg.integrations.accelerate train.py

``Accelerator(cpu=True)``, ``ACCELERATE_USE_CPU`` and ``ACCELERATE_TORCH_DEVICE`` have
their usual meaning.
"""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from types import CodeType
from typing import Any

import torch
from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler

from torch_openreg import openreg

from ._library import check_parameters, require

require("accelerate")

from accelerate import Accelerator  # noqa: E402
from accelerate import accelerator as accelerator_module  # noqa: E402
from accelerate.state import PartialState  # noqa: E402
from accelerate.utils import DistributedType, parse_flag_from_env  # noqa: E402

__all__ = ["disable", "enable", "is_enabled"]

_TESTED = "1.15.0"

_SAVED = ["output_dir", "model_states", "optimizers", "schedulers", "dataloaders"]
_LOADED = ["input_dir", "models", "optimizers", "schedulers", "dataloaders"]
# The replaced functions, and the parameters on which the replacements rely.
_REPLACED: list[tuple[Any, str, list[str]]] = [
    (PartialState, "_prepare_backend", ["self", "cpu", "sagemaker_dp", "backend"]),
    (PartialState, "set_device", ["self"]),
    (accelerator_module, "get_grad_scaler", ["distributed_type", "kwargs"]),
    (accelerator_module, "save_accelerator_state", [*_SAVED, "process_index", "..."]),
    (
        accelerator_module,
        "load_accelerator_state",
        [*_LOADED, "process_index", "scaler", "map_location", "..."],
    ),
]

# The original functions of accelerate while they are replaced.
_originals: dict[str, Any] = {}


def is_enabled() -> bool:
    """Returns whether accelerate uses openreg in this process."""
    return bool(_originals)


def enable() -> None:
    """Makes openreg the device of accelerate, until :func:`disable`.

    A process that torchrun starts uses the device of its ``LOCAL_RANK``, and the
    backend occl. ``Accelerator.save_state`` also saves the RNG states of the devices.
    A second call does nothing.

    Raises:
        RuntimeError: If accelerate has already chosen a device, or if its functions are
            not supported.
    """
    if is_enabled():
        return
    if PartialState._shared_state:
        raise RuntimeError(
            "torch_openreg.integrations.accelerate.enable: accelerate already uses "
            f"{PartialState().device}. Call enable() before the first Accelerator, "
            "PartialState or transformers.TrainingArguments."
        )
    found = {}
    for owner, name, parameters in _REPLACED:
        full_name = f"{owner.__name__}.{name}"
        original = getattr(owner, name, None)
        found[name] = check_parameters(
            "accelerate", _TESTED, full_name, original, parameters
        )
    default_device = PartialState.default_device
    code = Accelerator.__init__.__code__
    changed = _with_half_precision(code)
    _originals.update(found, default_device=default_device, code=code)
    for owner, name, _ in _REPLACED:
        setattr(owner, name, _REPLACEMENTS[name])
    PartialState.default_device = property(lambda _: torch.device("openreg"))
    Accelerator.__init__.__code__ = changed


def disable() -> None:
    """Undoes :func:`enable`; existing Accelerators keep their device."""
    if not is_enabled():
        return
    for owner, name, _ in _REPLACED:
        setattr(owner, name, _originals[name])
    PartialState.default_device = _originals["default_device"]
    Accelerator.__init__.__code__ = _originals["code"]
    _originals.clear()


def _with_half_precision(code: CodeType) -> CodeType:
    """Adds openreg to the devices for float16, a constant of the constructor.

    Raises:
        RuntimeError: If the constructor does not have exactly one constant of this
            form.
    """
    lists = [
        const
        for const in code.co_consts
        if isinstance(const, tuple) and {"cuda", "npu"}.issubset(const)
    ]
    if len(lists) != 1:
        raise RuntimeError(
            "torch_openreg.integrations.accelerate changes the list of devices for "
            "float16 in Accelerator.__init__, but accelerate "
            f"{version('accelerate')} has {len(lists)} lists with cuda and npu there. "
            f"The integration was tested with accelerate {_TESTED}."
        )
    consts = tuple(
        (*const, "openreg") if const is lists[0] else const for const in code.co_consts
    )
    return code.replace(co_consts=consts)


def _prepare_backend(
    self: PartialState,
    cpu: bool = False,
    sagemaker_dp: bool = False,
    backend: str | None = None,
) -> tuple[str | None, DistributedType]:
    """Returns the backend and the kind of the process group, if one is used.

    accelerate does not have a kind for unknown devices. MULTI_NPU is the kind for
    Ascend devices, which are PrivateUse1 devices, too: its code does not use functions
    of ``torch.cuda``.
    """
    rank = int(os.environ.get("LOCAL_RANK", -1))
    if cpu or sagemaker_dp or rank == -1:
        result: tuple[str | None, DistributedType]
        result = _originals["_prepare_backend"](self, cpu, sagemaker_dp, backend)
        return result
    if backend is None:
        # FSDP gathers state dicts on the CPU, so accelerate adds gloo to NCCL.
        gathers = (
            parse_flag_from_env("FSDP_OFFLOAD_PARAMS")
            or os.environ.get("FSDP_STATE_DICT_TYPE") == "FULL_STATE_DICT"
        )
        fsdp = parse_flag_from_env("ACCELERATE_USE_FSDP")
        backend = "cpu:gloo,openreg:occl" if fsdp and gathers else "occl"
    return backend, DistributedType.MULTI_NPU


def _set_device(self: PartialState) -> None:
    """Chooses the device of this process and makes it current."""
    if self.device is not None:  # ACCELERATE_TORCH_DEVICE has named it
        return
    if self._cpu or self.distributed_type == DistributedType.NO:
        _originals["set_device"](self)
    else:
        index = self.local_process_index % openreg.device_count()
        self.device = torch.device("openreg", index)
        openreg.set_device(index)


def _get_grad_scaler(
    distributed_type: DistributedType | None = None, **kwargs: Any
) -> torch.amp.GradScaler:
    """Creates the gradient scaler for float16."""
    if distributed_type == DistributedType.FSDP:
        return ShardedGradScaler(device="openreg", **kwargs)
    return torch.amp.GradScaler("openreg", **kwargs)


def _rng_file(folder: Any, process_index: int) -> Path:
    return Path(folder) / f"openreg_random_states_{process_index}.pkl"


def _save_accelerator_state(
    output_dir: Any,
    model_states: Any,
    optimizers: Any,
    schedulers: Any,
    dataloaders: Any,
    process_index: int,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Saves the RNG states of the devices next to accelerate's RNG state file."""
    state = (model_states, optimizers, schedulers, dataloaders, process_index)
    result = _originals["save_accelerator_state"](output_dir, *state, *args, **kwargs)
    torch.save(openreg.get_rng_state_all(), _rng_file(output_dir, process_index))
    return result


def _load_accelerator_state(
    input_dir: Any,
    models: Any,
    optimizers: Any,
    schedulers: Any,
    dataloaders: Any,
    process_index: int,
    scaler: Any = None,
    map_location: Any = None,  # noqa: ARG001
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Loads the RNG states of the devices, unless another device made the files.

    The other states are loaded to the CPU and copied to the device, because safetensors
    does not accept openreg by name.
    """
    state = (models, optimizers, schedulers, dataloaders, process_index, scaler, "cpu")
    result = _originals["load_accelerator_state"](input_dir, *state, *args, **kwargs)
    file = _rng_file(input_dir, process_index)
    if file.exists():
        openreg.set_rng_state_all(torch.load(file))
    return result


_REPLACEMENTS: dict[str, Callable[..., Any]] = {
    "_prepare_backend": _prepare_backend,
    "set_device": _set_device,
    "get_grad_scaler": _get_grad_scaler,
    "save_accelerator_state": _save_accelerator_state,
    "load_accelerator_state": _load_accelerator_state,
}


def _main() -> None:
    """Runs a program like Python, with accelerate on openreg."""
    del sys.argv[0]
    program = sys.argv[1:2] if sys.argv[:1] == ["-m"] else sys.argv[:1]
    if not program or program[0].startswith("-"):
        sys.exit(
            "usage: python -m torch_openreg.integrations.accelerate "
            "(PROGRAM.py | -m MODULE) [ARGUMENT ...]"
        )
    enable()
    if sys.argv[0] == "-m":
        del sys.argv[0]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
        runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    # Imports the module by its name, so that programs find it enabled.
    from torch_openreg.integrations.accelerate import _main as main

    main()
