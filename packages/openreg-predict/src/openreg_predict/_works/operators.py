# SPDX-License-Identifier: BSD-3-Clause
"""The class, the operations and the bytes of each operator of PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

from openreg_predict._works import table
from openreg_predict._works.operator_classes import NOTHING, kind_of
from openreg_predict._works.work import SIZES, Call, TensorFacts, Work, distinct_bytes

Rule = Callable[[Call], Work]


def work_of(call: Call) -> Work:
    """Classifies a call and counts its operations and bytes.

    An operator that has no class is ``unknown``: costed by its bytes, never free.

    Args:
        call: The call.
    """
    if call.is_view or call.name in NOTHING:
        return Work(call.name, "view", _dtype(call))
    rule = _RULES.get(call.name.rstrip("_") or call.name) or _RULES.get(call.name)
    if rule is not None:
        try:
            return rule(call)
        except LookupError:  # a form of the operator without the usual tensors
            return _bytes(call, "unknown")
    kind = kind_of(call.name, call.tags)
    return _RESIDUAL[kind](call) if kind in _RESIDUAL else _bytes(call, kind)


def _dtype(call: Call) -> str:
    tensors = [*call.results, *call.tensors()]
    return tensors[0].dtype if tensors else "f32"


def _inputs(call: Call) -> list[TensorFacts]:
    """Returns the tensors that are read: not ``out``, and not what is overwritten."""
    skipped = {"out"}
    if call.name in _OVERWRITES:
        skipped.add("self")
    given = {n: v for n, v in call.arguments.items() if n not in skipped}
    return replace(call, arguments=given).tensors()


_OVERWRITES = frozenset({
    "copy_", "fill_", "zero_", "normal_", "uniform_", "bernoulli_", "random_",
    "exponential_", "geometric_", "cauchy_", "log_normal_", "_foreach_copy_",
    "_foreach_zero_", "zeros_like", "ones_like", "full_like", "empty_like", "rand_like",
    "randn_like", "randint_like", "new_zeros", "new_ones", "new_full",
})  # fmt: skip


def _outputs(call: Call) -> list[TensorFacts]:
    """Returns the tensors that are written, also in lists that change in place."""
    if call.results:
        return list(call.results)
    if call.name.endswith("_") and not call.name.endswith("__"):
        first = next(iter(call.arguments.values()), None)
        return replace(call, arguments={"self": first}).tensors()
    return []


def _bytes(call: Call, kind: str, operations: float = 1.0) -> Work:
    read, written = distinct_bytes(_inputs(call)), distinct_bytes(_outputs(call))
    elements = max((t.elements for t in (*_outputs(call), *_inputs(call))), default=0)
    each = _OPERATIONS.get(call.name.rstrip("_"), operations)
    return Work(call.name, kind, _dtype(call), each * elements, float(read),
                float(written), {"m": max(elements, 1), "n": 1})  # fmt: skip


# Vector operations for each element; others have one.
_OPERATIONS: Mapping[str, float] = {
    "pow": 12, "gelu": 6, "gelu_backward": 12, "tanh": 4, "silu": 4, "sigmoid": 4,
    "div": 2, "exp": 2, "log": 2, "sin": 4, "cos": 4, "erf": 6, "mish": 8,
}  # fmt: skip


def _product(left: str, right: str) -> Rule:
    def rule(call: Call) -> Work:
        a, b = call.tensor(left), call.tensor(right)
        *outer, m, k = (1, *a.shape) if len(a.shape) == 1 else a.shape
        n = 1 if len(b.shape) == 1 else b.shape[-1]
        batch = math.prod(outer)
        if len(b.shape) == 2 and batch > 1:  # one product for all of the batch
            batch, m = 1, math.prod(outer) * m
        return _sized_product(call, batch, m, n, k, a.dtype)

    return rule


def _sized_product(call: Call, b: int, m: int, n: int, k: int, dtype: str) -> Work:
    work = table.gemm(b, max(m, 1), max(n, 1), max(k, 1), dtype, call.name)
    read, written = distinct_bytes(_inputs(call)), distinct_bytes(_outputs(call))
    flops = 2.0 * b * m * n * k * (4 if dtype.startswith("c") else 1)
    return replace(work, flops=flops, read=float(read), written=float(written))


def _linear(call: Call) -> Work:
    a, w = call.tensor("input", "self"), call.tensor("weight")
    k = a.shape[-1] if a.shape else 1
    m = math.prod(a.shape[:-1])
    n = w.shape[0] if len(w.shape) > 1 else 1
    return _sized_product(call, 1, m, n, k, a.dtype)


def _grouped(call: Call) -> Work:
    a, b = call.tensor("self", "mat_a"), call.tensor("mat2", "mat_b")
    size = SIZES[a.dtype]
    if len(b.shape) == 3:  # tokens of experts, whose number is only in the offsets
        groups, k, n = b.shape
        t = a.elements // max(k, 1)
    else:
        groups = call.results[0].shape[0] if call.results else 1
        t, k, n = a.shape[-1], a.shape[0], b.shape[-1]
    active = min(groups, max(t, 1))
    facts = {"t": max(t, 1), "h": max(k, 1), "i": max(n / 3, 1), "topk": 1, "e": groups,
             "active": active}  # fmt: skip
    return Work(call.name, "grouped", a.dtype, 2.0 * t * k * n,
                float(size * (t * k + active * k * n)),
                float(distinct_bytes(_outputs(call))), facts)  # fmt: skip


def _attention(call: Call) -> Work:
    query, key = call.tensor("query", "q"), call.tensor("key", "k")
    *outer, h, s, d = (1, 1, *query.shape)[-4:] if len(query.shape) < 4 else query.shape
    if "_flash_attention" in call.name and "scaled" not in call.name:
        *outer, s, h, d = query.shape  # sequences before heads
        t, kv = key.shape[-3], key.shape[-2]
    else:
        kv, t = (1, *key.shape)[-3], key.shape[-2]
    mask = call.arguments.get("attn_bias") or call.arguments.get("attn_mask")
    bias = mask.bytes if isinstance(mask, TensorFacts) else 0
    return table.attention(
        math.prod(outer), max(s, 1), max(t, 1), max(h, 1), max(kv, 1), max(d, 1),
        query.dtype, causal=call.arguments.get("is_causal") is True and s > 1,
        backward="backward" in call.name, operator=call.name, bias=bias,
    )  # fmt: skip


def _convolution(call: Call) -> Work:
    image, weight = call.tensor("input", "self"), call.tensor("weight")
    transposed = call.arguments.get("transposed") is True or "transpose" in call.name
    groups = call.arguments.get("groups")
    stride = call.numbers("stride", (1, 1))
    backward = "backward" in call.name
    out = call.tensor("grad_output") if backward else call.results[0]
    if transposed:  # the gradient of a convolution from out to image
        image, out = out, image
    n, c, *plane = image.shape if len(image.shape) > 2 else (1, *image.shape)
    k, _, *window = weight.shape
    if not plane:
        raise LookupError(f"{call.name} has an image without a plane")
    h, w = math.prod(plane[:-1]), plane[-1]
    r, s = math.prod(window[:-1]), window[-1]
    size = out.shape[2:] or (1,)
    p, q = math.prod(size[:-1]), size[-1]
    steps = (math.prod(stride[:-1]) or 1, stride[-1])

    last = int(len(image.stride) > 2 and image.stride[1] == 1 < image.shape[1])

    def one(direction: str) -> Work:
        work = table.convolution(
            n, c, h, w, k, r, s, p, q, image.dtype, stride=steps,
            groups=groups if isinstance(groups, int) else 1, direction=direction,
            operator=call.name,
        )  # fmt: skip
        return replace(work, facts={**work.facts, "channels_last": last})

    if not backward:
        return one("input" if transposed else "forward")
    mask = call.arguments.get("output_mask", (True, True, False))
    wanted = tuple(bool(x) for x in mask) if isinstance(mask, (list, tuple)) else ()
    passes = [
        one(d) for d, asked in zip(("input", "weight"), wanted, strict=False) if asked
    ]
    if transposed and passes and wanted[0]:
        passes[0] = one("forward")
    if not passes:
        return _bytes(call, "reduction")
    both = passes[-1]
    if len(passes) == 1:
        return both
    # Two kernels: the facts are of the weight's, and "also" of the other.
    return replace(
        both,
        flops=sum(p.flops for p in passes),
        read=sum(p.read for p in passes),
        written=sum(p.written for p in passes),
        facts={**both.facts, "also_input": 1},
    )


def _rows(call: Call) -> int:
    """Returns the length of the rows that a norm or a reduction combines."""
    tensors = call.tensors()
    if not tensors:
        return 1
    shape = next((t.shape for t in tensors if t.shape), ())
    if normalized := call.numbers("normalized_shape"):
        return math.prod(normalized)
    if "batch_norm" in call.name or "group_norm" in call.name:
        return 1
    axes = call.numbers("dim", range(len(shape)))
    if not shape:
        return 1
    return math.prod(shape[axis] for axis in axes if -len(shape) <= axis < len(shape))


def _norm(call: Call) -> Work:
    work = _bytes(call, "norm", 5)
    n = _rows(call)
    elements = max((t.elements for t in call.tensors()), default=1)
    facts = {"m": max(elements / max(n, 1), 1), "n": max(n, 1)}
    passes = 1.5 if "batch_norm" in call.name and call.arguments.get("training") else 1
    return replace(work, read=work.read * passes, facts=facts)


def _reduction(call: Call) -> Work:
    return _bytes(call, "reduction")


def _gather(call: Call) -> Work:
    """Reads as many bytes of the table as it writes, not the whole table."""
    written = distinct_bytes(_outputs(call))
    others = [t for t in call.tensors() if t.dtype in ("i64", "i32", "b8")]
    whole = distinct_bytes(_inputs(call))
    read = min(whole, written + distinct_bytes(others))
    work = _bytes(call, "gather")
    return replace(work, read=float(read))


def _scatter(call: Call) -> Work:
    """Writes the touched rows; a functional form copies the whole table first."""
    tensors = call.tensors()
    if not tensors or not call.name.endswith("_"):
        return _bytes(call, "scatter")
    source = distinct_bytes(tensors[1:])
    touched = float(min(source, 2 * tensors[0].bytes))
    work = _bytes(call, "scatter")
    return replace(work, read=source + touched, written=touched)


def _optimizer(call: Call) -> Work:
    """Reads parameters, gradients and states; writes all but the gradients."""
    lists = {
        name: replace(call, arguments={name: value}).tensors()
        for name, value in call.arguments.items()
    }
    read = sum(distinct_bytes(each) for each in lists.values())
    kept = sum(
        distinct_bytes(each)
        for name, each in lists.items()
        if name not in ("grads", "state_steps", "lr", "grad_scale", "found_inf")
    )
    elements = sum(t.elements for t in lists.get("self", []))
    count = max(len(lists.get("self", [])), 1)
    facts = {"m": max(elements, 1), "n": 1, "tensors": count}
    flops = 12.0 * elements
    return Work(call.name, "optimizer", _dtype(call), flops, read, kept, facts)


def _linalg(call: Call) -> Work:
    """Counts two thirds of n cubed, for each matrix."""
    work = _bytes(call, "linalg")
    square = next((t for t in call.tensors() if len(t.shape) > 1), None)
    if square is None:
        return work
    n, batch = min(square.shape[-2:]), math.prod(square.shape[:-2])
    return replace(work, flops=0.67 * batch * n**2 * max(square.shape[-2:]))


def _fft(call: Call) -> Work:
    """Counts five n log n."""
    work = _bytes(call, "fft")
    elements = max((t.elements for t in call.tensors()), default=1)
    return replace(work, flops=5.0 * elements * math.log2(max(elements, 2)))


def _rnn(call: Call) -> Work:
    """Counts each weight twice for each element of the batch and each step."""
    work = _bytes(call, "rnn")
    tensors = call.tensors()
    if not tensors:
        return work
    weights = sum(t.elements for t in tensors[1:] if len(t.shape) == 2)
    steps = math.prod(tensors[0].shape[:-1])
    return replace(work, flops=2.0 * weights * steps)


def _matrix_like(call: Call) -> Work:
    tensors = call.tensors()
    if len(tensors) < 2:
        return _bytes(call, "unknown")
    a, b = tensors[:2]
    k = a.shape[-1] if a.shape else 1
    m = a.elements // max(k, 1)
    n = b.elements // max(k, 1)
    return _sized_product(call, 1, m, max(n, 1), k, a.dtype)


_CONVOLUTIONS = (
    "convolution", "convolution_overrideable", "convolution_backward",
    "convolution_backward_overrideable", "_convolution", "conv1d", "conv2d", "conv3d",
    "cudnn_convolution", "cudnn_convolution_transpose", "cudnn_convolution_relu",
    "cudnn_convolution_add_relu", "miopen_convolution", "miopen_convolution_relu",
    "miopen_convolution_transpose", "miopen_depthwise_convolution", "conv_transpose1d",
    "mkldnn_convolution", "conv_transpose2d", "conv_transpose3d", "_conv_depthwise2d",
    "conv_depthwise3d", "thnn_conv2d", "slow_conv3d", "slow_conv3d_forward",
    "_slow_conv2d_forward", "_slow_conv2d_backward", "slow_conv_dilated2d",
    "slow_conv_dilated3d", "slow_conv_transpose2d", "slow_conv_transpose3d",
    "_nnpack_spatial_convolution", "mps_convolution_backward",
)  # fmt: skip
_ATTENTIONS = tuple(
    f"{name}{suffix}"
    for name in (
        "scaled_dot_product_attention", "_scaled_dot_product_flash_attention",
        "_scaled_dot_product_flash_attention_for_cpu",
        "_scaled_dot_product_efficient_attention",
        "_scaled_dot_product_cudnn_attention",
        "_scaled_dot_product_fused_attention_overrideable",
        "_scaled_dot_product_attention_math",
        "_flash_attention", "_efficient_attention",
        "_cudnn_attention", "flex_attention",
    )
    for suffix in ("", "_forward", "_backward")
)  # fmt: skip
_RULES: Mapping[str, Rule] = {
    **dict.fromkeys(_CONVOLUTIONS, _convolution),
    **dict.fromkeys(_ATTENTIONS, _attention),
    "mm": _product("self", "mat2"),
    "bmm": _product("self", "mat2"),
    "mv": _product("self", "vec"),
    "dot": _reduction,
    "vdot": _reduction,
    "addmm": _product("mat1", "mat2"),
    "_addmm_activation": _product("mat1", "mat2"),
    "addmv": _product("mat", "vec"),
    "addbmm": _product("batch1", "batch2"),
    "baddbmm": _product("batch1", "batch2"),
    "matmul": _product("self", "other"),
    "linalg_matmul": _product("self", "other"),
    "_int_mm": _product("self", "mat2"),
    "_scaled_mm": _product("self", "mat2"),
    "_scaled_mm_v2": _product("self", "mat2"),
    "_weight_int8pack_mm": _linear,
    "_weight_int4pack_mm": _matrix_like,
    "linear": _linear,
    "mkldnn_linear": _linear,
    "_grouped_mm": _grouped,
    "_scaled_grouped_mm": _grouped,
    "_scaled_grouped_mm_v2": _grouped,
}
_RESIDUAL: Mapping[str, Rule] = {
    "norm": _norm,
    "reduction": _reduction,
    "gather": _gather,
    "scatter": _scatter,
    "optimizer": _optimizer,
    "linalg": _linalg,
    "fft": _fft,
    "rnn": _rnn,
    "gemm": _matrix_like,
}
