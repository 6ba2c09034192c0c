# SPDX-License-Identifier: BSD-3-Clause
"""The base of ``torch.cuda.CUDAGraph``, over ``torch.accelerator``'s graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch._C import _accelerator_emptyHostCache, _acceleratorGraph

from openreg_cuda._backend import openreg
from openreg_cuda._refused import Refusal

if TYPE_CHECKING:
    from typing import Self

_NO_HANDLE = "a simulated graph has no cudaGraph_t"


class CudaGraph(_acceleratorGraph):
    """A graph of the device's work.

    Args:
        keep_graph: Whether ``instantiate`` is left to the program.
    """

    def __new__(cls, keep_graph: bool = False) -> Self:
        """Creates an empty graph."""
        return super().__new__(cls, keep_graph)

    def __init__(self, keep_graph: bool = False) -> None:
        super().__init__(keep_graph)
        self._seed_and_offset: list[torch.Tensor] = []

    def capture_begin(
        self,
        pool: tuple[int, int] | None = None,
        capture_error_mode: str = "global",
    ) -> None:
        """Captures the current stream from now on."""
        # CUDA keeps the state of the generator in two tensors of the default stream,
        # outside of the pool. They are here for the statistics of memory.
        with torch.cuda.stream(torch.cuda.default_stream()):
            state = [torch.empty(1, dtype=torch.int64, device="cuda") for _ in range(2)]
        super().capture_begin(
            pool=pool,
            capture_error_mode=capture_error_mode,  # type: ignore[arg-type]
        )
        self._seed_and_offset = state

    def reset(self) -> None:
        """Deletes the captured work."""
        super().reset()
        self._seed_and_offset = []

    def register_generator_state(self, generator: torch.Generator) -> None:
        """Does nothing: a graph registers every generator that it draws from."""

    raw_cuda_graph = Refusal("CUDAGraph.raw_cuda_graph", _NO_HANDLE)
    raw_cuda_graph_exec = Refusal("CUDAGraph.raw_cuda_graph_exec", _NO_HANDLE)
    get_currently_capturing_graph = Refusal(
        "CUDAGraph.get_currently_capturing_graph",
        "the runtime does not record which graph object captures",
    )
    begin_capture_to_if_node = Refusal(
        "CUDAGraph.begin_capture_to_if_node", "its graphs have no conditional nodes"
    )
    end_capture_to_conditional_node = Refusal(
        "CUDAGraph.end_capture_to_conditional_node",
        "its graphs have no conditional nodes",
    )


NAMES: dict[str, object] = {
    "_CUDAGraph": CudaGraph,
    "_cuda_isCurrentStreamCapturing": lambda: openreg().is_current_stream_capturing(),
    "_host_emptyCache": lambda: _accelerator_emptyHostCache(),
}
