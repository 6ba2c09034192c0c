# SPDX-License-Identifier: BSD-3-Clause
"""Lists of operators of whole models, in tables whose shapes have the batch as B."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from openreg_predict._works import table
from openreg_predict._works.table import RowError
from openreg_predict._works.work import SIZES, Work

_GEOMETRY = re.compile(r"s(\d+)(?:x(\d+))? p(\d+)(?:x(\d+))? d(\d+)(?:x(\d+))? g(\d+)")
_PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "_scaled_mm")
_COLLECTIVES = ("all_gather", "reduce_scatter", "all_reduce", "alltoall")


@dataclass(frozen=True)
class Step:
    """A group of equal operators of a model.

    Attributes:
        parts: The kernels of one of them, such as the passes of a backward.
        count: How many there are.
        group: The kind of cost in a model, such as ``depthwise``.
        kernels: Kernels that one of them launches.
    """

    parts: tuple[Work, ...]
    count: float
    group: str
    kernels: float = 1.0


def _size(text: str, batch: int) -> int:
    if text.endswith("B"):
        return int(text[:-1] or 1) * batch
    return int(text)


def shape_of(text: str, batch: int) -> tuple[int, ...]:
    """Reads a shape such as ``Bx64x56x56`` or ``197Bx1296``."""
    return tuple(_size(part, batch) for part in text.split("x")) if text else ()


def _shapes(text: str, batch: int) -> list[tuple[int, ...]]:
    return [shape_of(part, batch) for part in text.split(";")]


def step_of(row: Mapping[str, str], batch: int, **facts: str) -> Step:
    """Reads a row of a table of operators.

    Args:
        row: The columns ``op``, ``config``, ``dtype``, ``count``, ``flops``,
            ``flops_per_batch``, ``bytes`` and ``bytes_per_batch``.
        batch: The batch.
        facts: The settings of the model, such as ``tf32`` and ``float8``.

    Raises:
        RowError: If a column cannot be read.
    """
    operator, config = row["op"], row["config"]
    try:
        flops = float(row["flops"] or 0) + batch * float(row["flops_per_batch"] or 0)
        size = float(row["bytes"] or 0) + batch * float(row["bytes_per_batch"] or 0)
        count = float(row["count"])
        dtype = row["dtype"].split(">")[0]
        if dtype not in SIZES:
            raise ValueError(f"dtype {dtype!r} is not one of {', '.join(SIZES)}")
        if operator in _PRODUCTS:
            if dtype == "f32" and facts.get("tf32") == "1":
                dtype = "tf32"
            if facts.get("float8") == "1" and operator != "bmm":
                dtype = "f8"
            return _product(operator, config, dtype, count, batch)
        if operator.startswith("convolution"):
            if dtype == "f32" and facts.get("tf32") == "1":
                dtype = "tf32"
            return _convolution(operator, config, dtype, count, batch)
        if operator.startswith("sdpa"):
            step = _attention(operator, config, dtype, count, batch)
            old = facts.get("torch", "2").startswith(("0.", "1."))
            return _without_fusion(step, dtype) if old else step
        if operator in _COLLECTIVES:
            given = table.settings(config)
            work = table.collective(
                operator, int(given["n"]), float(given["bytes"]), dtype
            )
            return Step((work,), count, "collective")
        return _memory(operator, config, dtype, count, batch, flops, size)
    except (ValueError, KeyError, IndexError) as error:
        raise RowError(
            f"operator {operator} with config {config!r} of graph "
            f"{row.get('graph', '')!r}: {error}"
        ) from error


def _product(operator: str, config: str, dtype: str, count: float, batch: int) -> Step:
    if ">" not in config:  # b x m x k x n
        b, m, k, n = (1, *shape_of(config, batch))[-4:]
    else:
        inputs = _shapes(config.partition(">")[0], batch)
        left, right = inputs[-2], inputs[-1]
        b = math.prod(left[:-2])
        m, k, n = left[-2], left[-1], right[-1]
    size = SIZES[dtype]
    work = table.gemm(b, m, n, k, dtype, operator)
    if operator in ("addmm", "baddbmm"):
        work = replace(work, read=work.read + size * n)
    return Step((work,), count, "bmm" if b > 1 else "mm")


def _plane(shape: tuple[int, ...]) -> tuple[int, int]:
    """Returns two sizes of an image; sizes of sequences and volumes are folded."""
    *outer, last = shape[2:]
    return math.prod(outer), last


def _convolution(
    operator: str, config: str, dtype: str, count: float, batch: int
) -> Step:
    shapes, _, geometry = config.partition("|")
    found = _GEOMETRY.search(geometry)
    if found is None:
        raise ValueError(f"geometry {geometry!r} is not such as 's1 p0 d1 g1'")
    stride = (int(found[1]), int(found[2] or found[1]))
    groups = int(found[7])
    inputs, outputs = (_shapes(part, batch) for part in shapes.split(">"))
    backward = operator == "convolution_backward"
    if backward:
        out, image, weight = inputs[:3]
    else:
        image, weight, out = inputs[0], inputs[1], outputs[0]
    n, c, h, w = (*image[:2], *_plane(image))
    k, _, r, s = (*weight[:2], *_plane(weight))
    p, q = _plane(out)
    directions = ["forward"]
    if backward:
        wanted = {"input": image in outputs, "weight": weight in outputs}
        directions = [name for name, asked in wanted.items() if asked]
    parts = tuple(
        table.convolution(
            n, c, h, w, k, r, s, p, q, dtype,
            stride=stride, groups=groups, direction=each, operator=operator,
        )
        for each in directions
    )  # fmt: skip
    if groups == 1:
        group = "conv1" if r * s == 1 else "conv"
    else:
        group = "depthwise" if groups == c and c > 1 else "grouped_conv"
    return Step(parts, count, group, float(len(parts)))


def _attention(
    operator: str, config: str, dtype: str, count: float, batch: int
) -> Step:
    shapes, _, flags = config.partition("|")
    inputs = _shapes(shapes.partition(">")[0], batch)
    query, key = inputs[0], inputs[1]
    bias = math.prod(inputs[3]) * SIZES[dtype] if len(inputs) > 3 else 0
    *outer, h, s, d = query
    *_, kv, t, _ = key
    work = table.attention(
        math.prod(outer), s, t, h, kv, d, dtype, bias=bias, operator=operator,
        causal="causal1" in flags, backward=operator == "sdpa_backward",
    )  # fmt: skip
    kernels = 3.0 if work.facts["pass"] == "backward" else 1.0
    return Step((work,), count, "sdpa", kernels)


def _without_fusion(step: Step, dtype: str) -> Step:
    """Returns attention as releases before 2.0 compute it: products and a softmax."""
    work = step.parts[0]
    b, h, s, t, d = (work.fact(name) for name in ("b", "h", "s", "t", "d"))
    backward = work.facts["pass"] == "backward"
    scores = b * h * s * t
    products = [table.gemm(b * h, s, t, d, dtype), table.gemm(b * h, s, d, t, dtype)]
    half = SIZES[dtype] * scores
    softmax = Work("_softmax", "norm", "f32", 5.0 * scores, 4.0 * scores,
                   4.0 * scores, {"m": b * h * s, "n": t})  # fmt: skip
    scale = Work("mul", "pointwise", dtype, scores, half, half)
    cast = Work("cast", "pointwise", dtype, scores, 4.0 * scores, half)
    parts = [*products, scale, softmax, cast]
    if backward:
        parts += [*products, replace(softmax, read=8.0 * scores), cast]
    return Step(tuple(parts), step.count, "sdpa", float(len(parts)))


_COPIES = ("copy", "copy_", "clone", "_to_copy", "cat", "stack", "constant_pad_nd",
           "repeat", "roll", "reflection_pad2d", "im2col", "zeros", "ones_like",
           "new_zeros", "arange", "unfold_backward", "slice_backward",
           "select_backward")  # fmt: skip
_INDEXED = ("embedding", "index", "index_select", "gather")
_SCATTERED = ("index_put", "index_copy_", "embedding_dense_backward", "scatter",
              "index_add", "scatter_add")  # fmt: skip


def _memory(
    operator: str, config: str, dtype: str, count: float, batch: int,
    flops: float, size: float,
) -> Step:  # fmt: skip
    inputs, _, outputs = config.partition("|")[0].partition(">")
    first = () if "weights" in inputs else shape_of(inputs.split(";")[0], batch)
    group, kind, kernels = "pointwise", "pointwise", 1.0
    row = 1
    if "norm" in operator or "softmax" in operator:
        kind = "norm"
        group = "batch_norm" if "batch" in operator else "norm"
        row = first[-1] if first else 1
    elif "pool" in operator or "upsample" in operator:
        kind, group = "pool", "pool"
    elif operator in (
        "mean",
        "sum",
        "var",
        "var_mean",
        "amax",
        "argmax",
        "linalg_vector_norm",
    ):
        kind, group = "reduction", "reduction"
    elif operator in _COPIES:
        kind, group = "copy", "cast" if operator == "_to_copy" else "copy"
    elif operator in _INDEXED:
        kind, group = "gather", "gather"
        result = shape_of(outputs.split(";")[0], batch)
        if result:  # rows that are read and written, not the whole table
            size = min(size, 2.0 * math.prod(result) * SIZES[dtype])
    elif operator in _SCATTERED:
        kind, group = "scatter", "gather"
        if operator == "index_copy_":
            source = shape_of(inputs.split(";")[-1], batch)
            size = min(size, 3.0 * math.prod(source) * SIZES[dtype])
    elif operator.startswith("optimizer"):
        kind, group = "optimizer", "optimizer"
        kernels = 0.0
    elements = math.prod(first) if first else size / (2 * SIZES[dtype])
    facts = {"m": max(elements / max(row, 1), 1), "n": max(row, 1)}
    work = Work(operator, kind, dtype, max(flops, elements * _WORK.get(operator, 1)),
                size / 2, size / 2, facts)  # fmt: skip
    return Step((work,), count, group, kernels)


# Vector operations for each element; others have one.
_WORK = {"pow": 12, "gelu": 6, "gelu_backward": 12, "tanh": 4, "silu": 4, "silu_": 4,
         "sigmoid": 4, "_softmax": 5, "native_layer_norm": 5}  # fmt: skip


def steps(rows: Sequence[Mapping[str, str]], batch: int, **facts: str) -> list[Step]:
    """Reads the operators of a model, in their order."""
    return [step_of(row, batch, **facts) for row in rows]
