# SPDX-License-Identifier: BSD-3-Clause
"""The device for DeepSpeed, through its accelerator abstraction.

Enable it for the whole process before the first import of DeepSpeed::

    from torch_openreg.integrations import deepspeed as openreg_deepspeed

    openreg_deepspeed.enable()
    import deepspeed

DeepSpeed then uses openreg like CUDA, with the backend occl. C++ extensions with host
kernels, such as ``DeepSpeedCPUAdam``, work. Extensions with device kernels, such as
``FusedAdam``, raise an error when they are loaded.
"""

from __future__ import annotations

import functools
import importlib.util
import sys
from contextlib import AbstractContextManager
from importlib.metadata import version
from types import ModuleType
from typing import Any

import torch

from torch_openreg import openreg
from torch_openreg.openreg._lazy import lazy_call

from ._library import missing

__all__ = ["enable", "is_enabled"]

_TESTED = "0.19.8"

# Extensions whose kernels only touch host memory.
_HOST_BUILDERS = (
    "AsyncIOBuilder",
    "CPUAdagradBuilder",
    "CPUAdamBuilder",
    "CPULionBuilder",
    "PinMemoryBuilder",
)


def is_enabled() -> bool:
    """Returns whether DeepSpeed uses openreg in this process."""
    module = sys.modules.get("deepspeed.accelerator.real_accelerator")
    accelerator = getattr(module, "ds_accelerator", None)
    return accelerator is not None and accelerator._name == "openreg"


def enable() -> None:
    """Imports DeepSpeed with openreg as its accelerator, for the rest of the process.

    DeepSpeed chooses its accelerator during its import, and its modules keep functions
    and builders of that accelerator. ``DS_ACCELERATOR`` accepts only listed names.
    Therefore this function calls ``set_accelerator``, DeepSpeed's function for
    accelerators of other packages, before DeepSpeed's own modules are imported. A
    second call does nothing.

    Raises:
        ModuleNotFoundError: If DeepSpeed is not installed.
        RuntimeError: If DeepSpeed is already imported, or if it requires accelerator
            methods that openreg's class lacks.
    """
    if is_enabled():
        return
    if sys.modules.get("deepspeed") is not None:
        raise RuntimeError(
            "torch_openreg.integrations.deepspeed.enable: deepspeed has been imported, "
            "and has chosen another accelerator. Call enable() before the first import "
            "of deepspeed; transformers and lightning import it, too."
        )
    spec = importlib.util.find_spec("deepspeed")
    if spec is None or spec.loader is None:
        raise missing("deepspeed")
    package = importlib.util.module_from_spec(spec)
    before = set(sys.modules)
    sys.modules["deepspeed"] = package  # not executed yet, because it would choose
    try:
        from deepspeed.accelerator import DeepSpeedAccelerator, set_accelerator

        set_accelerator(_accelerator_class(DeepSpeedAccelerator)())
        spec.loader.exec_module(package)
    except BaseException:
        for name in set(sys.modules) - before:
            if name.partition(".")[0] == "deepspeed":
                del sys.modules[name]
        raise


class _Methods:
    """The methods of DeepSpeed's abstract accelerator class."""

    _name = "openreg"
    _communication_backend_name = "occl"
    _compile_backend = "inductor"

    # An asynchronous device, like CUDA.

    def is_synchronized_device(self) -> bool:
        return False

    def use_host_timers(self) -> bool:
        return False

    def resolves_data_dependency(self) -> bool:
        return False

    def handles_memory_backpressure(self) -> bool:
        return False

    # Devices.

    def device_name(self, device_index: int | None = None) -> str:
        return "openreg" if device_index is None else f"openreg:{device_index}"

    def device(self, device_index: int | None = None) -> Any:
        return openreg.device(self._index(device_index))

    def current_device_name(self) -> str:
        return f"openreg:{openreg.current_device()}"

    def on_accelerator(self, tensor: torch.Tensor) -> bool:
        return tensor.device.type == "openreg"

    def communication_backend_name(self) -> str:
        return self._communication_backend_name

    set_device = staticmethod(openreg.set_device)
    current_device = staticmethod(openreg.current_device)
    device_count = staticmethod(openreg.device_count)
    synchronize = staticmethod(openreg.synchronize)
    is_available = staticmethod(openreg.is_available)
    lazy_call = staticmethod(lazy_call)

    @staticmethod
    def _index(device_index: int | None) -> int:
        return openreg.current_device() if device_index is None else device_index

    # Random numbers.

    def random(self) -> ModuleType:
        return torch.random

    def set_rng_state(
        self, new_state: torch.Tensor, device_index: int | None = None
    ) -> None:
        openreg.set_rng_state(new_state, self._index(device_index))

    def get_rng_state(self, device_index: int | None = None) -> torch.Tensor:
        return openreg.get_rng_state(self._index(device_index))

    def default_generator(self, device_index: int) -> torch.Generator:
        return openreg.default_generators[device_index]

    manual_seed = staticmethod(openreg.manual_seed)
    manual_seed_all = staticmethod(openreg.manual_seed_all)
    initial_seed = staticmethod(openreg.initial_seed)

    # Streams, events and graphs.

    Stream = openreg.Stream
    Event = openreg.Event
    stream = staticmethod(openreg.stream)
    current_stream = staticmethod(openreg.current_stream)
    default_stream = staticmethod(openreg.default_stream)
    is_current_stream_capturing = staticmethod(openreg.is_current_stream_capturing)

    def create_graph(self) -> Any:
        return torch.accelerator.Graph()

    def capture_to_graph(
        self, graph: Any, pool: Any = None, stream: Any = None
    ) -> AbstractContextManager[Any]:
        if pool is not None or stream is not None:
            raise NotImplementedError(
                "capture_to_graph: openreg takes pool and stream from the graph's "
                f"constructor, but pool is {pool!r} and stream is {stream!r}"
            )
        context: AbstractContextManager[Any] = graph
        return context

    def replay_graph(self, graph: Any) -> None:
        graph.replay()

    # Memory.

    empty_cache = staticmethod(openreg.empty_cache)
    memory_allocated = staticmethod(openreg.memory_allocated)
    max_memory_allocated = staticmethod(openreg.max_memory_allocated)
    reset_max_memory_allocated = staticmethod(openreg.reset_peak_memory_stats)
    memory_cached = staticmethod(openreg.memory_reserved)
    max_memory_cached = staticmethod(openreg.max_memory_reserved)
    reset_max_memory_cached = staticmethod(openreg.reset_peak_memory_stats)
    memory_stats = staticmethod(openreg.memory_stats)
    reset_peak_memory_stats = staticmethod(openreg.reset_peak_memory_stats)
    memory_reserved = staticmethod(openreg.memory_reserved)
    max_memory_reserved = staticmethod(openreg.max_memory_reserved)

    def total_memory(self, device_index: int | None = None) -> int:
        return openreg.mem_get_info(self._index(device_index))[1]

    def available_memory(self, device_index: int | None = None) -> int:
        return openreg.mem_get_info(self._index(device_index))[0]

    # Types.

    def is_bf16_supported(self) -> bool:
        return openreg.is_bf16_supported()

    def is_fp16_supported(self) -> bool:
        return True

    def supported_dtypes(self) -> list[torch.dtype]:
        return [torch.float, torch.half, torch.bfloat16]

    def is_triton_supported(self) -> bool:
        return False

    BFloat16Tensor = functools.partial(
        torch.tensor, dtype=torch.bfloat16, device="openreg"
    )
    ByteTensor = functools.partial(torch.tensor, dtype=torch.uint8, device="openreg")
    DoubleTensor = functools.partial(torch.tensor, dtype=torch.double, device="openreg")
    FloatTensor = functools.partial(torch.tensor, dtype=torch.float, device="openreg")
    HalfTensor = functools.partial(torch.tensor, dtype=torch.half, device="openreg")
    IntTensor = functools.partial(torch.tensor, dtype=torch.int, device="openreg")
    LongTensor = functools.partial(torch.tensor, dtype=torch.long, device="openreg")

    # Profiling.

    def range_push(self, msg: str, *_: Any, **__: Any) -> int:
        return openreg.profiler.range_push(msg)

    def range_pop(self, **_: Any) -> int:
        return openreg.profiler.range_pop()

    # Extensions: the CPU's extensions that do not access device memory.

    def op_builder_dir(self) -> str:
        return "deepspeed.ops.op_builder.cpu"

    def create_op_builder(self, class_name: str) -> Any:
        return self.get_op_builder(class_name)()

    def get_op_builder(self, class_name: str) -> Any:
        from deepspeed.ops.op_builder import cpu

        if class_name in _HOST_BUILDERS:
            return getattr(cpu, class_name)
        return _without_kernels(cpu.NotImplementedBuilder, class_name)

    def build_extension(self) -> Any:
        from torch.utils.cpp_extension import BuildExtension

        return BuildExtension

    # DeepSpeed's launcher.

    def export_envs(self) -> list[str]:
        return ["OPENREG"]  # a prefix: passes all settings to the other nodes

    def visible_devices_envs(self) -> list[str]:
        return []  # a rank sees all devices and uses the one of its LOCAL_RANK

    def set_visible_devices_envs(
        self, current_env: dict[str, str], local_accelerator_ids: list[int]
    ) -> None:
        pass

    # Compiler.

    def get_compile_backend(self) -> str:
        return self._compile_backend

    def set_compile_backend(self, backend: str) -> None:
        known = torch._dynamo.list_backends(exclude_tags=())
        if backend not in known:
            raise ValueError(f"backend is {backend!r}, and must be one of {known}")
        self._compile_backend = backend


def _accelerator_class(base: type) -> type:
    """Creates a subclass of DeepSpeed's class, which enable() imports."""
    names = {name: value for name, value in vars(_Methods).items() if name[:2] != "__"}
    made = type("OpenRegAccelerator", (base,), {"__init__": _initialize, **names})
    lacking = sorted(getattr(made, "__abstractmethods__", ()))
    if lacking:
        raise RuntimeError(
            f"torch_openreg.integrations.deepspeed: deepspeed {version('deepspeed')} "
            f"wants accelerators to have {', '.join(lacking)}, which openreg's lacks. "
            f"The integration was tested with deepspeed {_TESTED}."
        )
    return made


def _initialize(self: Any) -> None:
    """Keeps the names, which DeepSpeed's constructor would set to None."""


def _without_kernels(base: type, class_name: str) -> type:
    """Creates the builder of an unsupported extension."""

    def load(*_: Any, **__: Any) -> None:
        raise ValueError(
            f"{class_name}: openreg has no kernels for this extension of DeepSpeed. "
            "Give deepspeed.initialize an optimizer of torch.optim, or set "
            '"torch_adam": true in the params of the optimizer Adam or AdamW.'
        )

    return type(class_name, (base,), {"load": load})
