# SPDX-License-Identifier: BSD-3-Clause
"""The ``torch.compile`` backend with the device's name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch._dynamo.backends import registry

from openreg_aten._C import device_type


def register() -> None:
    """Registers the backend, ``torch.compile(backend="openreg")``."""
    registry.register_backend(compile_graph, name=device_type())


def compile_graph(
    graph: torch.fx.GraphModule,
    example_inputs: list[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """Compiles a graph with Inductor, where the device is registered.

    Args:
        graph: The graph that Dynamo has traced.
        example_inputs: Fake tensors and numbers for its inputs.
        mode: As of ``torch.compile``.
        options: As of ``torch.compile``: settings of Inductor for this graph.

    Returns:
        The compiled function.
    """
    from torch._inductor import list_mode_options
    from torch._inductor.compile_fx import compile_fx

    settings = {**(list_mode_options(mode) if mode else {}), **(options or {})}
    compiled: Any = compile_fx(graph, example_inputs, config_patches=settings)
    return compiled  # type: ignore[no-any-return]
