# SPDX-License-Identifier: BSD-3-Clause
"""Decomposes FlexAttention calls for which Inductor has no C++ template.

PyTorch's CPU template computes only the output of attention, in three dtypes, and
neither the log-sum-exp or the maximum of the scores nor gradients. PyTorch's eager mode
computes all of these from the score matrix. This module traces that computation into
the graph, and Inductor compiles it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import fx
from torch._dispatch.python import enable_python_dispatcher
from torch._higher_order_ops.flex_attention import (
    flex_attention,
    flex_attention_backward,
    sdpa_dense,
    sdpa_dense_backward,
)
from torch._inductor import inductor_prims
from torch._inductor.decomposition import select_decomp_table
from torch._inductor.kernel.flex.flex_cpu import check_cpu_supported
from torch._inductor.virtualized import V
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.utils import _pytree as pytree

# Arguments of both operators: the tensors captured by the score function and by the
# mask function, and options.
_BUFFERS, _MASK_BUFFERS, _OPTIONS = -2, -1, -3
_BLOCK_MASK = -5
# Arguments of the backward pass: the score function, and its joint graph.
_FUNCTION, _JOINT = -7, -6
_NO_BLOCKS = 1 << 30  # the block size without a mask


def decompose(gm: fx.GraphModule, device: str) -> None:
    """Replaces calls that have no template.

    Args:
        gm: The graph of a forward or backward pass, which is changed in place.
        device: The device name; calls on other devices stay.

    Raises:
        RuntimeError: If a function captures a tensor of another device, or if the
            kernel options select a backend with different results.
    """
    calls = [
        *_calls(gm, flex_attention, device),
        *_calls(gm, flex_attention_backward, device),
    ]
    for call in calls:
        options: Any = call.args[_OPTIONS]
        _check(call, options)
        if call.target is flex_attention_backward:
            _inline(gm, call, _backward)
        elif _has_template(call):
            options = options | {"OUTPUT_LOGSUMEXP": False, "OUTPUT_MAX": False}
            call.update_arg(len(call.args) + _OPTIONS, options)
            _compute_captured(gm, call)
        else:
            _inline(gm, call, _forward)
    if calls:
        gm.graph.eliminate_dead_code()
        gm.recompile()


def _has_template(call: fx.Node) -> bool:
    """Returns whether the template computes all used results of a call."""
    tensors: Any = call.args[:3]
    types = {node.meta["val"].dtype for node in tensors}
    more = any(user.users for user in call.users if user.args[1] != 0)
    # The template confuses the names of symbolic numbers.
    symbols = any(
        isinstance(node.meta["val"], torch.SymInt) for node in _captured(call)
    )
    # It reads computed values from memory, but a single number is not materialized.
    numbers = any(map(_is_computed_number, _captured(call)))
    return (
        not more
        and not symbols
        and not numbers
        and len(types) == 1
        and types <= {torch.float, torch.bfloat16, torch.half}
        and bool(check_cpu_supported())  # type: ignore[no-untyped-call]
    )


def _is_computed_number(node: fx.Node) -> bool:
    value = node.meta["val"] if node.op == "call_function" else None
    return isinstance(value, torch.Tensor) and statically_known_true(value.numel() <= 1)


def _compute_captured(gm: fx.GraphModule, call: fx.Node) -> None:
    """Materializes captured values before the call, as the template requires."""
    for node in _captured(call):
        value = node.meta["val"] if node.op == "call_function" else None
        if isinstance(value, torch.Tensor):
            with gm.graph.inserting_before(call):
                computed = gm.graph.call_function(
                    inductor_prims.force_stride_order, (node, value.stride())
                )
            computed.meta = dict(node.meta)
            call.replace_input_with(node, computed)


def _forward(*args: Any) -> tuple[torch.Tensor, ...]:
    out, sums, largest = sdpa_dense(*args)
    # The traced graph expects float32, even for attention in float64.
    return out, sums.float(), largest.float()


def _backward(*args: Any) -> Any:
    if args[0].dtype == torch.double:
        given: list[Any] = [*args[:3], args[_FUNCTION], *args[_BLOCK_MASK:]]
        _, sums, _ = sdpa_dense(*given)
        args = (*args[:4], sums, *args[5:])  # at full precision
    *gradients, captured = sdpa_dense_backward(*args)
    # The traced graph expects a gradient for each tensor, and autograd uses the
    # required ones. An unused tensor has no gradient here.
    filled = [
        torch.zeros_like(buffer)
        if gradient is None and isinstance(buffer, torch.Tensor)
        else gradient
        for buffer, gradient in zip(args[_BUFFERS], captured, strict=True)
    ]
    return *gradients, tuple(filled)


def _calls(gm: fx.GraphModule, target: Any, device: str) -> Iterator[fx.Node]:
    for node in gm.graph.find_nodes(op="call_function", target=target):
        if node.args[0].meta["val"].device.type == device:
            yield node


def _captured(call: fx.Node) -> list[fx.Node]:
    """Returns the distinct nodes that the functions of a call captured."""
    buffers: Any = (*call.args[_BUFFERS], *call.args[_MASK_BUFFERS])  # type: ignore[misc]
    return list(dict.fromkeys(each for each in buffers if isinstance(each, fx.Node)))


def _check(call: fx.Node, options: Any) -> None:
    """Refuses captured tensors of other devices, except CPU scalars."""
    query: Any = call.args[0]
    place = query.meta["val"].device
    for node in _captured(call):
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor) and value.device != place and value.dim():
            raise RuntimeError(
                "Expected all tensors to be on the same device, but query is on "
                f"{place}, and a function of flex_attention captures a tensor on "
                f"{value.device}"
            )
    if options.get("BACKEND") == "FLASH":
        raise RuntimeError(
            "BACKEND='FLASH' but flash attention cannot be used: "
            f"{place.type} does not have this kernel. Use BACKEND='AUTO'"
        )


def _inline(gm: fx.GraphModule, call: fx.Node, dense: Any) -> None:
    """Replaces a call by its operators."""
    wanted = _with_gradients(gm, call)
    leaves, spec = pytree.tree_flatten(call.args)
    nodes = dict.fromkeys(leaf for leaf in leaves if isinstance(leaf, fx.Node))
    functions = {
        node: _Function(value)
        for node in nodes
        if node.op == "get_attr"
        and isinstance(value := _attribute(gm, node), fx.GraphModule)
    }
    inputs = [node for node in nodes if node not in functions]

    def run(*values: Any) -> Any:
        known = {**functions, **dict(zip(inputs, values, strict=True))}
        for node in wanted:
            known[node].requires_grad = True
        args = [known[leaf] if isinstance(leaf, fx.Node) else leaf for leaf in leaves]
        return dense(*_within_blocks(*pytree.tree_unflatten(args, spec)))

    with V.fake_mode, enable_python_dispatcher(), torch.no_grad():
        traced = make_fx(
            torch.func.functionalize(run), decomposition_table=select_decomp_table()
        )(*(node.meta["val"] for node in inputs))
    _replace(call, _copy(gm, call, traced, inputs))


def _attribute(gm: fx.GraphModule, node: fx.Node) -> Any:
    return operator.attrgetter(str(node.target))(gm)


class _Function(fx.Interpreter):
    """Runs a score or mask function with operators that vmap can batch."""

    within: torch.Tensor | None = None  # whether the position is in a block of the mask

    def __call__(self, *args: Any) -> Any:
        """Calls the function."""
        return self.run(*args)

    def call_function(
        self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Calls an operator or its replacement."""
        # vmap would call this operator once per score.
        if target is torch.ops.prims.convert_element_type.default:
            return args[0].to(args[1])
        if self.within is not None and target in _SAFE:
            args = _SAFE[target](self.within, *args)
        return super().call_function(target, args, kwargs)

    def output(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Returns lists as plain lists, which vmap recognizes."""
        result = super().output(target, args, kwargs)
        return list(result) if isinstance(result, list) else result


# Positions outside the mask's blocks get arguments that no operator refuses, and
# contribute zero to sums.
def _index(within: torch.Tensor, table: Any, indices: Any, *args: Any) -> Any:
    safe = [
        torch.where(within, index, 0)
        if isinstance(index, torch.Tensor) and index.dtype != torch.bool
        else index
        for index in indices
    ]
    return table, safe, *args


def _scatter(
    within: torch.Tensor, table: Any, indices: Any, values: Any, *args: Any
) -> Any:
    return _index(within, table, indices, torch.where(within, values, 0), *args)


def _gather(
    within: torch.Tensor, table: Any, dim: int, index: torch.Tensor, *args: Any
) -> Any:
    return table, dim, torch.where(within, index, 0), *args


def _divide(within: torch.Tensor, number: Any, divisor: Any, *args: Any) -> Any:
    if isinstance(divisor, torch.Tensor) and not divisor.is_floating_point():
        divisor = torch.where(within, divisor, 1)
    return number, divisor, *args


_aten = torch.ops.aten
_SAFE: dict[Any, Callable[..., Any]] = {
    _aten.index.Tensor: _index,
    _aten._unsafe_index.Tensor: _index,
    _aten.gather.default: _gather,
    _aten.index_put.default: _scatter,
    _aten._unsafe_index_put.default: _scatter,
    torch.ops.flex_lib.zeros_and_scatter.default: _scatter,
    _aten.div.Tensor_mode: _divide,
    _aten.floor_divide.default: _divide,
    _aten.remainder.Tensor: _divide,
    _aten.remainder.Scalar_Tensor: _divide,
    _aten.fmod.Tensor: _divide,
}


def _within_blocks(*args: Any) -> list[Any]:
    """Limits the functions of a call to the mask's blocks.

    A kernel calls them only inside blocks. The dense formula calls them everywhere.
    """
    result = list(args)
    *facts, mask = result[_BLOCK_MASK]
    rows, columns = facts[-2:]
    if all(isinstance(each, int) and each >= _NO_BLOCKS for each in (rows, columns)):
        return result
    width = (args[1].size(-2) + columns - 1) // columns
    partial: Any
    partial, full = (
        None if count is None else _matrix(count, indices, width)
        for count, indices in (facts[2:4], facts[4:6])
    )
    both = partial if full is None else partial | full

    def listed(blocks: Any, *place: torch.Tensor) -> Any:
        b, h, q, kv = place
        at = [b % blocks.size(0), h % blocks.size(1), q // rows, kv // columns]
        return torch.ops.aten.index(blocks, at)

    def masked(*values: Any) -> Any:
        place = values[:4]
        mask.within = listed(partial, *place)
        found = mask.within & mask(*values)
        return found if full is None else found | listed(full, *place)

    def scored(function: _Function) -> Any:
        def run(score: torch.Tensor, *values: Any) -> Any:
            function.within = listed(both, *values[:4])
            return function(score, *values)

        return run

    result[_BLOCK_MASK] = (*facts, masked)
    return [scored(each) if isinstance(each, _Function) else each for each in result]


def _matrix(count: torch.Tensor, indices: torch.Tensor, width: Any) -> torch.Tensor:
    """Converts the blocks listed for each row to a row of booleans."""
    places = torch.arange(indices.size(-1), device=count.device)
    listed = places < count.unsqueeze(-1)
    none = count.new_zeros((*count.shape, width + 1), dtype=torch.bool)
    at = torch.where(listed, indices, width).long()
    return none.scatter(-1, at, True)[..., :width]


def _with_gradients(gm: fx.GraphModule, call: fx.Node) -> set[fx.Node]:
    """Returns the tensors captured by a score function that have gradients.

    The dense backward pass reads their ``requires_grad``.
    """
    if call.target is not flex_attention_backward:
        return set()
    joint, buffers = call.args[_JOINT], call.args[_BUFFERS]
    assert isinstance(joint, fx.Node)
    assert isinstance(buffers, tuple)
    results: Any = _attribute(gm, joint).graph.output_node().args[0]
    gradients = results[len(results) - len(buffers) :]
    return {
        buffer
        for buffer, gradient in zip(buffers, gradients, strict=True)
        if isinstance(buffer, fx.Node) and gradient is not None
    }


def _copy(
    gm: fx.GraphModule, call: fx.Node, traced: fx.GraphModule, inputs: list[fx.Node]
) -> Any:
    """Copies a traced graph in front of a call and returns the nodes of its results."""
    here = dict(zip(traced.graph.find_nodes(op="placeholder"), inputs, strict=True))
    with gm.graph.inserting_before(call):
        for node in traced.graph.nodes:
            if node.op == "get_attr":
                name = f"{call.name}_{node.target}"
                gm.register_buffer(name, getattr(traced, node.target))
                here[node] = gm.graph.get_attr(name)
                here[node].meta = dict(node.meta)
            elif node.op == "call_function":
                here[node] = gm.graph.node_copy(node, here.__getitem__)
    return fx.map_arg(traced.graph.output_node().args[0], here.__getitem__)


def _replace(node: fx.Node, result: Any) -> None:
    """Replaces the uses of a result, or of the items of a tuple."""
    if isinstance(result, fx.Node):
        node.replace_all_uses_with(result)
    for user in list(node.users):
        assert user.target is operator.getitem
        _replace(user, result[user.args[1]])
    node.graph.erase_node(node)
