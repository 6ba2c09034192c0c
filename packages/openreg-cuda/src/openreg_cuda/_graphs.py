# SPDX-License-Identifier: BSD-3-Clause
"""The base of ``torch.cuda.CUDAGraph``, over ``torch.accelerator``'s graphs."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from torch._C import _accelerator_emptyHostCache, _acceleratorGraph

from openreg_cuda._backend import openreg
from openreg_cuda._refused import Refusal

if TYPE_CHECKING:
    from typing import Self

    import torch

_NO_HANDLE = "a simulated graph has no cudaGraph_t"
_pools = count(1)


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

    def capture_begin(
        self,
        pool: tuple[int, int] | None = None,
        capture_error_mode: str = "global",
    ) -> None:
        """Captures the current stream from now on."""
        super().capture_begin(
            pool=pool,
            capture_error_mode=capture_error_mode,  # type: ignore[arg-type]
        )

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
    "_graph_pool_handle": lambda: (0, next(_pools)),
    "_cuda_isCurrentStreamCapturing": lambda: openreg().is_current_stream_capturing(),
    "_host_emptyCache": lambda: _accelerator_emptyHostCache(),
}
