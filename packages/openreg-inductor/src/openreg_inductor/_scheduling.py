# SPDX-License-Identifier: BSD-3-Clause
"""Inductor's C++ kernels, generated as for the CPU and launched on the device."""

from __future__ import annotations

import functools
from typing import Any
from unittest.mock import patch

from torch._inductor import config
from torch._inductor.codegen import cpp, cpp_template_kernel
from torch._inductor.codegen.cpp import CppScheduling
from torch._inductor.codegen.cpp_flex_attention_template import CppFlexAttentionTemplate
from torch._inductor.utils import IndentedBuffer, Placeholder, get_fused_kernel_name
from torch._inductor.virtualized import V

import openreg_runtime
from openreg_inductor import _kernels

# Operators that may refuse values: a zero divisor, an index out of bounds, a failed
# assertion.
_REFUSING = (
    "floordiv",
    "truncdiv",
    "remainder",
    "mod",
    "check_bounds",
    "device_assert_async",
)


def _may_raise(node: Any) -> bool:
    body = getattr(node, "_body", None)
    return body is not None and any(map(body.has_op, _REFUSING))


class Scheduling(CppScheduling):
    """Generates the kernels of a graph's nodes.

    Raises:
        RuntimeError: If devices are in separate processes.
    """

    kernel_proxy_cls = _kernels.KernelProxy

    def __init__(self, scheduler: Any) -> None:
        if openreg_runtime.setting("OPENREG_ISOLATION").value == "process":
            raise RuntimeError(
                "Inductor needs device memory in the process of the program, which "
                "OPENREG_ISOLATION=process does not give: set it to thread or "
                'loopback, or compile with backend="aot_eager"'
            )
        super().__init__(scheduler)  # type: ignore[no-untyped-call]

    def define_kernel(
        self, src_code: str, nodes: list[Any], kernel_args: Any = None
    ) -> str:
        """Generates the definition of a kernel, unless its source is already defined.

        Returns:
            The kernel's name.
        """
        if V.graph.cpp_wrapper:
            name: str = super().define_kernel(src_code, nodes, kernel_args)  # type: ignore[no-untyped-call]
            return name
        wrapper = V.graph.wrapper_code
        # A CPU kernel may have the same source and a different binding.
        known = f"{src_code}\n// of a device"
        if known in wrapper.src_to_kernel:
            return wrapper.src_to_kernel[known]
        descriptive: Any = config.cpp.descriptive_names
        fused = get_fused_kernel_name(nodes, descriptive) if descriptive else ""
        name = "_".join(["cpp", fused, wrapper.next_kernel_suffix()])
        wrapper.src_to_kernel[known] = name
        source = src_code.replace(str(Placeholder.KERNEL_NAME), "kernel")
        source = source.replace(str(Placeholder.DESCRIPTIVE_NAME), name)
        source = source.replace("#pragma CMT", "//")
        args = self.kernel_group.args if kernel_args is None else kernel_args
        *_, types = args.cpp_argdefs()
        definition = IndentedBuffer()
        definition.writeline(
            f"_codecache.load_kernel(async_compile, {name!r}, {types!r}, r'''"
        )
        definition.splice(source, strip=True)
        definition.writeline("''')")
        wrapper.define_kernel(name, definition.getvalue(), gpu=False)
        return name

    def codegen_template(self, *args: Any, **kwargs: Any) -> Any:
        """Generates a template kernel, including the kernels that are fused into it."""
        # Templates refer to the class by name; FlexAttention's takes it from its
        # module.
        own = _kernels.KernelProxy
        with (
            patch.object(cpp_template_kernel, "CppKernelProxy", own),
            patch.object(cpp, "CppKernelProxy", own),
        ):
            return super().codegen_template(*args, **kwargs)

    def can_fuse_vertical(self, node1: Any, node2: Any) -> bool:
        """Returns whether two nodes can form one kernel."""
        if node1.is_template():
            template = node1.get_template_node().template
            # The matmul template cannot keep its threads' exceptions, and
            # FlexAttention's template does not support an epilogue.
            if isinstance(template, CppFlexAttentionTemplate) or any(
                map(_may_raise, node2.get_nodes())
            ):
                return False
        can: bool = super().can_fuse_vertical(node1, node2)  # type: ignore[no-untyped-call]
        return can

    def codegen_node(self, node: Any) -> None:
        """Generates a kernel, or adds it to the pending kernels."""
        super().codegen_node(node)
        if self._has_order:
            self.flush()  # places its call before later calls of streams and events

    @functools.cached_property
    def _has_order(self) -> bool:
        """Whether the graph uses several streams or has calls without a device.

        PyTorch's scheduler flushes pending kernels only before calls of a device. The
        record of an event has none.
        """
        scheduler = self.scheduler
        assert scheduler is not None
        return scheduler._has_multi_stream_nodes() or any(
            node.is_extern() and node.get_device() is None for node in scheduler.nodes
        )

    def flush(self) -> None:
        """Generates the pending kernels and their calls."""
        nodes = self.kernel_group.scheduled_nodes
        if not nodes:
            super().flush()  # type: ignore[no-untyped-call]
            return
        # They may belong to the previous device.
        with V.graph.set_current_device(nodes[0].get_device()):
            super().flush()  # type: ignore[no-untyped-call]
