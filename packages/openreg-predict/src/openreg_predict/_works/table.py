# SPDX-License-Identifier: BSD-3-Clause
"""Rows of tables of single operators and collectives, as works."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from openreg_predict._works.work import SIZES, Work


class RowError(ValueError):
    """A row cannot be read; the message names the column and what is accepted."""


Settings = Mapping[str, str]


def settings(config: str) -> dict[str, str]:
    """Splits a configuration such as ``m=16;n=32``."""
    return dict(part.split("=", 1) for part in config.split(";") if "=" in part)


def work_of_row(operator: str, config: str, dtype: str) -> Work:
    """Returns the work of a row of a table.

    Args:
        operator: The column ``op_or_model``.
        config: The column ``config``.
        dtype: The column ``dtype``.

    Raises:
        RowError: If the operator is unknown, or a setting is missing.
    """
    rule = _RULES.get(operator)
    if rule is None:
        raise RowError(f"op_or_model {operator!r} is not one of {', '.join(_RULES)}")
    if dtype.split(">")[0] not in SIZES:
        raise RowError(f"dtype {dtype!r} is not one of {', '.join(SIZES)}")
    given = settings(config)
    try:
        return rule(operator, given, dtype)
    except KeyError as error:
        raise RowError(
            f"config {config!r} of {operator} has no {error.args[0]!r}"
        ) from None
    except ValueError:
        raise RowError(f"config {config!r} of {operator} needs whole numbers") from None


def gemm(
    b: int, m: int, n: int, k: int, dtype: str, operator: str = "mm", **facts: int
) -> Work:
    """Returns the work of ``b`` products of m x k and k x n."""
    size = SIZES[dtype]
    shape = {"b": b, "m": m, "n": n, "k": k, **facts}
    written = b * max(size, 2) * m * n
    return Work(operator, "gemm", dtype, 2.0 * b * m * n * k,
                float(size * b * (m * k + k * n)), float(written), shape)  # fmt: skip


def attention(
    b: int, s: int, t: int, h: int, kv: int, d: int, dtype: str, *,
    causal: bool = False, backward: bool = False, operator: str = "sdpa", bias: int = 0,
) -> Work:  # fmt: skip
    """Returns the work of attention of ``s`` queries over ``t`` keys, in one kernel."""
    size = SIZES[dtype]
    flops = 4.0 * b * h * s * t * d * (0.5 if causal else 1)
    read = size * b * d * (h * s + 2 * kv * t) + bias
    written = size * b * d * h * s
    facts = {"b": b, "s": s, "t": t, "h": h, "kv": kv, "d": d, "causal": int(causal)}
    facts["scale"] = 1
    if backward:
        flops, read, written = 2.5 * flops, 2 * read + written, read
        facts["scale"] = 3  # five products instead of two, with more traffic
    return Work(operator, "attention", dtype, flops, float(read), float(written),
                {**facts, "pass": "backward" if backward else "forward"})  # fmt: skip


def convolution(
    n: int, c: int, h: int, w: int, k: int, r: int, s: int, p: int, q: int,
    dtype: str, *, stride: tuple[int, int] = (1, 1), groups: int = 1,
    direction: str = "forward", operator: str = "convolution", host_timed: int = 0,
) -> Work:  # fmt: skip
    """Returns the work of one pass of a convolution."""
    size = SIZES[dtype]
    flops = 2.0 * n * k * p * q * (c // groups) * r * s
    image, out, weight = n * c * h * w, n * k * p * q, k * (c // groups) * r * s
    written = {"forward": out, "input": image, "weight": weight}[direction]
    facts: dict[str, int | float | str] = {
        "n": n, "c": c, "h": h, "w": w, "k": k, "r": r, "s": s, "p": p, "q": q,
        "sh": stride[0], "sw": stride[1], "g": groups,
        "input": int(direction == "input"), "weight": int(direction == "weight"),
        "host_timed": host_timed, "pass": direction,
    }  # fmt: skip
    return Work(operator, "convolution", dtype, flops,
                float(size * (image + out + weight - written)), float(size * written),
                facts)  # fmt: skip


def collective(name: str, devices: int, size: float, dtype: str) -> Work:
    """Returns the work of a collective of ``devices`` that each hold ``size`` bytes."""
    share = (devices - 1) / devices
    sent = {
        "all_reduce": 2 * size * share, "all_gather": size * share,
        "reduce_scatter": size * share, "alltoall": size * share,
    }.get(name, size)  # fmt: skip
    facts = {
        "devices": devices,
        "sent": max(sent, 1.0),
        "reduces": int(name in ("all_reduce", "reduce_scatter", "reduce")),
        "rounds": 2 if name == "all_reduce" else 1,
        "exchange": int(name == "alltoall"),
    }
    return Work(name, "collective", dtype, 0.0, float(size), float(size), facts)


def _gemm(operator: str, c: Settings, dtype: str) -> Work:
    b, m, n, k = (int(c.get("b", 1)), *(int(c[x]) for x in ("m", "n", "k")))
    timed = int("ta" in c)  # harnesses with these settings time calls on the host
    return gemm(b, m, n, k, dtype, operator, host_timed=timed)


def _fp8_linear(operator: str, c: Settings, dtype: str) -> Work:
    m, n, k = (int(c[x]) for x in ("m", "n", "k"))
    facts = {"b": 1, "m": m, "n": n, "k": k}
    return Work(operator, "gemm", dtype, 2.0 * m * n * k,
                float(3 * m * k + k * n), float(m * k + 2 * m * n), facts)  # fmt: skip


def _attention(operator: str, c: Settings, dtype: str) -> Work:
    b, s, h, kv, d = (int(c[x]) for x in ("b", "s", "h", "kv", "d"))
    queries = 1 if operator == "attn_decode" else s
    return attention(b, queries, s, h, kv, d, dtype, operator=operator,
                     causal=operator == "attn_prefill")  # fmt: skip


def experts_with_tokens(experts: int, tokens: float, skew: float = 1.2) -> float:
    """Returns how many experts get tokens, if their shares follow a power law.

    Args:
        experts: The number of experts.
        tokens: Pairs of token and expert.
        skew: The exponent of the law; 0 spreads tokens evenly.
    """
    shares = [(rank + 1.0) ** -skew for rank in range(experts)]
    whole = sum(shares)
    expected: float = sum(1 - (1 - s / whole) ** tokens for s in shares)
    return max(expected, 1.0)


def _moe(operator: str, c: Settings, dtype: str) -> Work:
    t, h, i, topk, e = (int(c[x]) for x in ("t", "h", "i", "topk", "e"))
    law = c.get("dist", "")
    skew = float(law.rpartition("_")[2]) if law.startswith("power_law_") else 0.0
    active = max(experts_with_tokens(e, t * topk, skew), min(topk, e))
    size = SIZES[dtype]
    facts = {"t": t, "h": h, "i": i, "topk": topk, "e": e, "active": active}
    return Work(operator, "grouped", dtype, 6.0 * t * topk * h * i,
                size * (3.0 * h * i * active + t * h), float(size * t * h),
                facts)  # fmt: skip


def _convolution(operator: str, c: Settings, dtype: str) -> Work:
    n, ci, h, w, k, r, s, ph, pw, sh, sw = (
        int(c[x]) for x in ("n", "c", "h", "w", "k", "r", "s", "ph", "pw", "sh", "sw")
    )
    p, q = (h + 2 * ph - r) // sh + 1, (w + 2 * pw - s) // sw + 1
    direction = {"conv_bwd_input": "input", "conv_bwd_weight": "weight"}
    return convolution(n, ci, h, w, k, r, s, p, q, dtype, stride=(sh, sw),
                       direction=direction.get(operator, "forward"),
                       operator=operator, host_timed=1)  # fmt: skip


# Vector operations for each element; others have one.
_OPERATIONS = {"pow": 12, "powu": 12, "gelu": 6, "tanh": 4, "div": 2, "silu_mul": 4,
               "softmax": 5, "layer_norm": 5, "rms_norm": 5}  # fmt: skip
_NORMS = ("softmax", "layer_norm", "rms_norm")
_TWO_OPERANDS = ("add", "mul", "div", "pow", "silu_mul")


def _memory(operator: str, c: Settings, dtype: str) -> Work:
    m, n = int(c["m"]), int(c["n"])
    source, _, target = dtype.partition(">")
    read, written = SIZES[source], SIZES[target or source]
    read *= 2 if operator in _TWO_OPERANDS else 1
    kind = (
        "norm" if operator in _NORMS else "copy" if operator == "cast" else "pointwise"
    )
    # One harness times half-precision calls on the host.
    timed = int(dtype == "f16" and operator in ("gelu", "softmax", "layer_norm"))
    facts = {"m": m, "n": n, "host_timed": timed}
    return Work(operator, kind, dtype, float(m * n * _OPERATIONS.get(operator, 1)),
                float(m * n * read), float(m * n * written), facts)  # fmt: skip


def _collective(operator: str, c: Settings, dtype: str) -> Work:
    return collective(operator, int(c["n"]), float(c["bytes"]), dtype)


_RULES: Mapping[str, Callable[[str, Settings, str], Work]] = {
    "gemm": _gemm,
    "bmm": _gemm,
    "fp8_linear": _fp8_linear,
    "attn_prefill": _attention,
    "attn_full": _attention,
    "attn_decode": _attention,
    "moe": _moe,
    "conv_fwd": _convolution,
    "conv_bwd_input": _convolution,
    "conv_bwd_weight": _convolution,
    **dict.fromkeys(
        ("add", "addu", "mul", "mulu", "div", "divu", "pow", "powu", "relu", "gelu",
         "tanh", "silu_mul", "cast", *_NORMS),
        _memory,
    ),
    **dict.fromkeys(
        ("all_reduce", "all_gather", "reduce_scatter", "alltoall"), _collective
    ),
}  # fmt: skip


def is_finite(value: float) -> bool:
    """Returns whether a time can be written to a table."""
    return math.isfinite(value) and value > 0
