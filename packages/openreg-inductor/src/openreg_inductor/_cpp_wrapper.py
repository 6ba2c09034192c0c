# SPDX-License-Identifier: BSD-3-Clause
"""Generates the C++ that calls device kernels: cpp_wrapper and AOTInductor."""

from __future__ import annotations

from typing import Any

import torch
from torch._inductor import config, ir
from torch._inductor.codegen.cpp_wrapper_cpu import CppWrapperCpu
from torch._inductor.codegen.wrapper import PythonWrapperCodegen
from torch._inductor.virtualized import V

from openreg_aten._C import device_type
from openreg_inductor import _source
from openreg_inductor._overrides import key_name
from openreg_inductor._wrapper import is_ours

_LAUNCH = _source.headers(
    "c_shim_openreg.h", "launch.h", "bound.h", "runtime.h", "wrapper.h"
)
_JIT = f"#include <torch/csrc/inductor/cpp_wrapper/cpu.h>\n{_LAUNCH}"
_AOT = (
    f"#define OPENREG_DEVICE_TYPE aoti_torch_device_type_{key_name().lower()}\n"
    f"{_source.headers('aoti.h')}\n{_LAUNCH}"
)


class CppWrapper(CppWrapperCpu):
    """Generates the C++ function of a graph, or the C++ model of AOTInductor."""

    def __init__(self) -> None:
        self.device = device_type()
        self._may_raise: dict[str, bool] = {}
        super().__init__()  # type: ignore[no-untyped-call]

    @staticmethod
    def create(
        is_subgraph: bool,
        subgraph_name: str | None,
        parent_wrapper: PythonWrapperCodegen | None,
        partition_signatures: ir.GraphPartitionSignature | None = None,
    ) -> PythonWrapperCodegen:
        """Creates the wrapper of a graph; a subgraph shares it."""
        del is_subgraph, subgraph_name, parent_wrapper, partition_signatures
        return CppWrapper()

    def add_device_include(self, device: str) -> None:
        """Adds the includes that calls for a device need."""
        if not self.included_devices:
            self.included_devices.add(self.device)
            self.header.splice_jit(_JIT)
            self.header.splice_aot(_AOT)
            if self.device != "openreg":
                # The only name that Inductor does not get from get_c_shim_func_name().
                self.header.splice(
                    f"#define aoti_torch_{self.device}_view_dtype "
                    "aoti_torch_openreg_view_dtype"
                )
        super().add_device_include(device)

    @staticmethod
    def get_c_shim_func_name(kernel: str, device: str) -> str:
        """Returns the C function that calls an operator."""
        if is_ours(torch.device(device)):
            device = "openreg"
        name: str = CppWrapperCpu.get_c_shim_func_name(kernel, device)
        return name

    def _define_kernel_helper(
        self,
        kernel_name: str,
        kernel_body: str,
        metadata: str | None = None,
        gpu: bool = False,
        cpp_definition: str | None = None,
    ) -> None:
        if not gpu:
            # CPU kernels, too: they share a source and its error handling.
            self._may_raise[kernel_name] = _source.may_raise(kernel_body)
            kernel_body = f"{_source.HEADERS}\n{_source.rewrite_body(kernel_body)}"
        super()._define_kernel_helper(
            kernel_name, kernel_body, metadata, gpu, cpp_definition
        )

    def _generate_kernel_call_helper(
        self,
        kernel_name: str,
        call_args: list[str],
        *,
        device: torch.device | None = None,
        triton: bool = True,
        **kwargs: Any,
    ) -> None:
        device = device or V.graph.get_current_device_or_throw()
        if triton or not is_ours(device):
            super()._generate_kernel_call_helper(
                kernel_name, call_args, device=device, triton=triton, **kwargs
            )
            return
        index = self.codegen_device_idx(device, str(device.index))  # type: ignore[no-untyped-call]
        may_raise = "true" if self._may_raise[kernel_name] else "false"
        arguments = [f'"{kernel_name}"', may_raise, index, *map(str, call_args)]
        launch = f"openreg::inductor::Launch<&{kernel_name}>::run"
        line = self.wrap_kernel_call(launch, arguments)  # type: ignore[no-untyped-call]
        self.writeline(line)  # type: ignore[no-untyped-call]

    def _generate_end_jit(self, result: Any) -> None:
        # Compiled as for the CPU, together with the kernels, which share headers.
        device, self.device = self.device, "cpu"
        with config.patch(cpp_wrapper_build_separate=False):
            super()._generate_end_jit(result)  # type: ignore[no-untyped-call]
        self.device = device
