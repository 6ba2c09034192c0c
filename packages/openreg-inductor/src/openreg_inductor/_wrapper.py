# SPDX-License-Identifier: BSD-3-Clause
"""Generates the Python code that calls device kernels."""

from __future__ import annotations

from typing import Any

import torch
from torch._inductor import ir
from torch._inductor.codegen.wrapper import (
    PythonWrapperCodegen,
    SubgraphPythonWrapperCodegen,
)
from torch._inductor.virtualized import V

from openreg_aten._C import device_type


def is_ours(device: torch.device) -> bool:
    """Returns whether a device is an OpenReg device."""
    return device.type == device_type()


class _Lines:
    """Generates the lines that differ from other devices."""

    def make_allocation(
        self,
        name: str,
        device: torch.device,
        dtype: torch.dtype,
        shape: Any,
        stride: Any,
        allocation_shape: Any = None,
        is_pinned: bool = False,
    ) -> str:
        if not is_ours(device):
            line: str = super().make_allocation(  # type: ignore[misc]
                name, device, dtype, shape, stride, allocation_shape, is_pinned
            )
            return line
        # PyTorch's line would not contain the index.
        size, strides, allocated = (
            self.codegen_python_shape_tuple(each)  # type: ignore[attr-defined]
            for each in (shape, stride, allocation_shape or shape)
        )
        line = (
            f"{name} = _empty_strided({allocated}, {strides}, {dtype}, {device.index})"
        )
        return line if size == allocated else f"{line}.as_strided({size}, {strides})"

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
            super()._generate_kernel_call_helper(  # type: ignore[misc]
                kernel_name, call_args, device=device, triton=triton, **kwargs
            )
            return
        arguments = [str(device.index), *call_args]
        self.writeline(self.wrap_kernel_call(kernel_name, arguments))  # type: ignore[attr-defined]


class Wrapper(_Lines, PythonWrapperCodegen):
    """Generates the Python function of a graph."""

    @staticmethod
    def create(
        is_subgraph: bool,
        subgraph_name: str | None,
        parent_wrapper: PythonWrapperCodegen | None,
        partition_signatures: ir.GraphPartitionSignature | None = None,
    ) -> PythonWrapperCodegen:
        """Creates the wrapper of a graph or of a subgraph."""
        if is_subgraph:
            assert subgraph_name is not None
            assert parent_wrapper is not None
            return SubgraphWrapper(subgraph_name, parent_wrapper, partition_signatures)
        return Wrapper()  # type: ignore[no-untyped-call]

    def write_header(self) -> None:
        super().write_header()
        self.imports.writeline("from openreg_inductor import _codecache")
        self.imports.writeline(
            "from openreg_inductor._C import DeviceGuard as _DeviceGuard"
        )
        self.imports.writeline(
            "from openreg_inductor._C import empty_strided as _empty_strided"
        )
        self.imports.writeline(
            "from openreg_inductor._interface import Interface as _interface"
        )


class SubgraphWrapper(_Lines, SubgraphPythonWrapperCodegen):
    """Generates the Python function of a subgraph."""
