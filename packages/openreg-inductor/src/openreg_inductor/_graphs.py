# SPDX-License-Identifier: BSD-3-Clause
"""``mode="reduce-overhead"``: captures and replays compiled functions.

Inductor divides a program into functions that can be captured and others, and passes
the former to ``cudagraph_trees``, which supports CUDA. This module replaces it for
device functions. As there, a function runs normally once, is captured at its second
call, and is replayed from then on.
"""

from __future__ import annotations

import functools
import logging
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from torch._C._dynamo import guards
from torch._dynamo.utils import counters
from torch._inductor import config, cudagraph_trees, cudagraph_utils
from torch._inductor.compile_fx import index_expanded_dims_and_copy_, static_input
from torch._inductor.output_code import get_expanded_dims
from torch._logging._internal import warning_once

from openreg_aten._C import device_type
from openreg_inductor import _C, _patches

Function = Callable[[list[Any]], Any]
_Graphs = dict[tuple[int, ...], "_Recorded | None"]  # by stream and size
# Errors that stay on a device until its reset, whatever function runs.
_OF_THE_DEVICE = ("orErrorDeviceLost", "orErrorIllegalAddress")
# The setting for the number of sizes that are captured, since torch 2.15.
_LIMIT = "cudagraph_dynamic_shape_rerecord_limit"
_log = logging.getLogger(__name__)
_reinterpret: Any = guards._reinterpret_tensor  # type: ignore[attr-defined]


def register() -> None:
    """Replaces CUDA's graphs for device functions.

    Raises:
        UpstreamChangedError: If ``cudagraph_trees`` differs from the supported
            versions of torch.
    """
    _patches.check_graphs()
    device = device_type()
    foreign = {"cuda"} - {device}  # types of real GPUs
    trees: Any = cudagraph_trees
    graphs_of_cuda, manager_of_cuda = trees.cudagraphify_impl, trees.get_manager

    @functools.wraps(graphs_of_cuda)
    def cudagraphify_impl(
        model: Function,
        inputs: Sequence[Any],
        static_input_idxs: Sequence[int],
        *args: Any,
        **options: Any,
    ) -> Function:
        types = {each.device.type for each in inputs if isinstance(each, Tensor)}
        if types & foreign or (not types and foreign and torch.cuda.is_available()):
            function: Function = graphs_of_cuda(
                model, inputs, static_input_idxs, *args, **options
            )
            return function
        return _Graphed(
            model,
            torch.device(device, options["device_index"]),
            frozenset(static_input_idxs),
            frozenset(options.get("mutated_input_idxs", ())),
            options.get("placeholders", ()),
            options.get("constants", ()),
        )

    @functools.wraps(manager_of_cuda)
    def get_manager(
        device_index: int | None = None, create_if_none_exists: bool = True
    ) -> Any:
        if device_index is None:  # since torch 2.14: CUDA's current device
            return manager_of_cuda(None, create_if_none_exists)
        manager = manager_of_cuda(device_index, create_if_none_exists)
        return _NoTree() if manager is None else manager

    trees.cudagraphify_impl = cudagraphify_impl
    trees.get_manager = get_manager


class _NoTree:
    """Stands for a graph tree when a captured function's backward pass begins.

    It is false, because Dynamo asks an existing tree for its nodes.
    """

    def __bool__(self) -> bool:
        return False

    def set_to_running_backward(self) -> None:
        """Does nothing: results that are in use are moved to separate memory."""


class _Caller:
    """A program thread, together with the autograd threads that work for it."""

    _KEY = "openreg_inductor.caller"

    @classmethod
    def current(cls) -> _Caller:
        """Returns the caller that this thread is or works for."""
        if not torch._C._is_key_in_tls(cls._KEY):
            torch._C._stash_obj_in_tls(cls._KEY, cls())
        caller: _Caller = torch._C._get_obj_in_tls(cls._KEY)
        return caller


class _Graphed:
    """A compiled function with a graph per caller, stream and size.

    A replay moves the results of the previous replay to other memory. A thread must not
    do that while another thread reads them, so each caller has separate graphs, which
    end with it.
    """

    _boxed_call = True  # takes a list and clears it

    def __init__(
        self,
        function: Function,
        device: torch.device,
        static: frozenset[int],
        mutated: frozenset[int],
        placeholders: Sequence[cudagraph_utils.PlaceholderInfo],
        constants: Sequence[Tensor],
    ) -> None:
        self._function = function
        self._device = device
        self._static = static
        self._mutated = mutated
        self._placeholders = placeholders
        self._constants = constants
        self._lock = threading.Lock()
        self._graphs = WeakKeyDictionary[_Caller, _Graphs]()
        self._moves: Counter[int] = Counter()
        self._moved = 0
        self._skipped = False
        self._warned = False

    def __call__(self, inputs: list[Any]) -> Any:
        """Runs the function.

        Args:
            inputs: Tensors and numbers; the list is cleared.

        Returns:
            The results.
        """
        # The backward pass needs the caller, even if the forward pass is not captured.
        caller = _Caller.current()
        stream = torch.accelerator.current_stream(self._device.index)
        if self._skipped or stream.is_capturing():
            return self._function(inputs)
        with self._lock:
            graph = self._graph(caller, stream, inputs)
            if graph is not None:
                try:
                    return graph.replay(inputs)
                except torch.AcceleratorError:
                    self._graphs.clear()  # the device was lost or reset
                    raise
        return self._function(inputs)

    def _graph(
        self, caller: _Caller, stream: torch.Stream, inputs: list[Any]
    ) -> _Recorded | None:
        """Returns or captures the graph of a call; None if the call is not captured."""
        numbers = tuple(each for each in inputs if isinstance(each, int))
        key = (stream.stream_id, *numbers)
        graphs = self._graphs.setdefault(caller, {})
        if key not in graphs:
            sizes: Any = numbers[0] if len(numbers) == 1 else numbers or None
            if not cudagraph_trees.is_cudagraph_capture_sizes(sizes):
                return None
            limit = getattr(config.triton, _LIMIT, None)
            if limit is not None and len(graphs) >= limit:
                warning_once(_log, f"{_LIMIT}={limit}: further sizes are not captured")
                return None
            known: Any = graphs  # it counts them
            if not self._warned:
                self._warned = cudagraph_utils.maybe_warning_due_to_dynamic_shape(
                    known, key
                )
            graphs[key] = None
            reason = self._reason_against(inputs)
            if reason is not None:
                self._skip(reason)
            return None
        graph = graphs[key]
        if graph is not None:
            moved = graph.moved(inputs)
            if not moved:
                return graph
            self._moves.update(moved)
            self._moved += 1
            if self._moved > config.triton.cudagraph_unexpected_rerecord_limit:
                self._skip(
                    "skipping cudagraphs due to static inputs that moved more than "
                    f"{config.triton.cudagraph_unexpected_rerecord_limit} times"
                )
                return None
        # Inputs that have moved twice are copied, unless they are mutated.
        fixed = {i for i in self._static if self._moves[i] < 2 or i in self._mutated}
        try:
            graph = _Recorded(
                self._function, self._device, inputs, fixed, self._constants
            )
        except RuntimeError as error:
            if any(each in str(error) for each in _OF_THE_DEVICE):
                self._graphs.clear()
                raise
            # If the function itself is wrong, the normal call raises the error.
            self._skip(f"skipping cudagraphs due to a failed capture: {error}")
            return None
        graphs[key] = graph
        return graph

    def _reason_against(self, inputs: list[Any]) -> str | None:
        for i, each in enumerate(inputs):
            if isinstance(each, list | tuple):  # of what torch.cond returned
                return f"skipping cudagraphs due to an input with several parts ({i})"
            if isinstance(each, Tensor) and each.device != self._device:
                return f"skipping cudagraphs due to an input of {each.device} ({i})"
        written = self._mutated - self._static
        if written:
            return cudagraph_utils.get_mutation_stack_trace(
                self._placeholders, sorted(written)
            )
        return None

    def _skip(self, reason: str) -> None:
        self._skipped = True
        self._graphs.clear()
        cudagraph_utils.log_cudagraph_skip_and_bump_counter(reason)


class _Recorded:
    """A graph with its inputs and results."""

    def __init__(
        self,
        function: Function,
        device: torch.device,
        inputs: list[Any],
        fixed: set[int],
        constants: Sequence[Tensor],
    ) -> None:
        tensors = [i for i, each in enumerate(inputs) if isinstance(each, Tensor)]
        self._fixed = [(i, inputs[i].data_ptr()) for i in tensors if i in fixed]
        read = [
            each.detach() if i in tensors else each for i, each in enumerate(inputs)
        ]
        self._copied = [i for i in tensors if i not in fixed]
        for i in self._copied:
            read[i] = static_input(inputs[i])
        self._read = [read[i] for i in self._copied]
        self._expanded = [get_expanded_dims(inputs[i]) for i in self._copied]
        self._dense = not any(self._expanded)
        self._graph = torch.accelerator.Graph(capture_error_mode="thread_local")
        results = self._capture(function, device, list(read))
        counters["inductor"]["openreg_graphs"] += 1

        self._results: list[Callable[[list[Any], list[Tensor]], Any]] = []
        kept = {each.untyped_storage()._cdata for each in constants}
        # A result may lie in the memory of a fixed input.
        places = {read[i].untyped_storage()._cdata: i for i, _ in self._fixed}
        made: list[Tensor] = []
        for each in results:
            if not isinstance(each, Tensor):
                self._results.append(_constant(each))
                continue
            storage = each.untyped_storage()._cdata
            if storage in places:
                place = places[storage]
                self._results.append(_view(each, read[place], place))
            elif storage in kept:
                self._results.append(_constant(each))
            else:
                self._results.append(_made(len(made)))
                made.append(each)
        self._made = _C.GraphResults(made)

    def _capture(
        self, function: Function, device: torch.device, inputs: list[Any]
    ) -> Sequence[Any]:
        """Captures a call on a separate stream."""
        with torch.Stream(device):
            self._graph.capture_begin()
            try:
                results = function(inputs)
            except BaseException:
                self._graph.reset()
                raise
            self._graph.capture_end()
        return results if isinstance(results, list | tuple) else (results,)

    def moved(self, inputs: list[Any]) -> list[int]:
        """Returns the inputs that are not at the address that the graph reads."""
        return [i for i, address in self._fixed if inputs[i].data_ptr() != address]

    def replay(self, inputs: list[Any]) -> list[Any]:
        """Runs the graph on the current stream.

        Args:
            inputs: The function's inputs; the list is cleared.

        Returns:
            The results, which keep their values when the graph is replayed again.
        """
        self._made.keep_live()
        given = [inputs[i] for i in self._copied]
        if self._dense and given:
            torch._foreach_copy_(self._read, given)
        else:
            for target, source, dims in zip(
                self._read, given, self._expanded, strict=True
            ):
                index_expanded_dims_and_copy_(target, source, dims)
        self._graph.replay()
        made = self._made.give()
        results = [result(inputs, made) for result in self._results]
        inputs.clear()
        return results


def _constant(value: Any) -> Callable[[list[Any], list[Tensor]], Any]:
    """A result that is the same at each replay."""
    return lambda _inputs, _made: value


def _made(number: int) -> Callable[[list[Any], list[Tensor]], Any]:
    """A result in the graph's memory."""
    return lambda _inputs, made: made[number]


def _view(
    result: Tensor, read: Tensor, place: int
) -> Callable[[list[Any], list[Tensor]], Any]:
    """A result that is a fixed input, or a view of one."""
    if result is read:
        return lambda inputs, _made: inputs[place]
    size, stride = result.size(), result.stride()
    offset = result.storage_offset() - read.storage_offset()
    return lambda inputs, _made: _reinterpret(inputs[place], size, stride, offset)
