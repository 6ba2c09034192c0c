# SPDX-License-Identifier: BSD-3-Clause
"""Selects tests from PyTorch's databases, all or a reproducible part."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import torch
from torch import Tensor
from torch.testing._internal import common_methods_invocations as invocations
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

T = TypeVar("T")

OPERATORS: list[OpInfo] = [
    *invocations.op_db,
    *invocations.foreach_unary_op_db,
    *invocations.foreach_binary_op_db,
    *invocations.foreach_pointwise_op_db,
    *invocations.foreach_reduce_op_db,
    *invocations.foreach_other_op_db,
]
LAYOUTS = [
    torch.strided,
    torch.sparse_coo,
    torch.sparse_csr,
    torch.sparse_csc,
    torch.sparse_bsr,
    torch.sparse_bsc,
]
SAMPLED_DTYPES = 2
SAMPLED_INPUTS = 3


def choose(key: str, values: Sequence[T], count: int) -> list[T]:
    """Selects evenly spread values, starting at a position derived from the key."""
    if len(values) <= count:
        return list(values)
    start = zlib.crc32(key.encode())
    step = len(values) / count
    return [values[int(start + i * step) % len(values)] for i in range(count)]


def short(name: object) -> str:
    """``torch.float32`` as ``float32``."""
    return str(name).removeprefix("torch.")


def sorted_dtypes(dtypes: Iterable[torch.dtype]) -> list[torch.dtype]:
    """Returns dtypes in a reproducible order."""
    return sorted(dtypes, key=str)


def operator_cases(whole: bool) -> Iterator[tuple[OpInfo, torch.layout, torch.dtype]]:
    """Lists operators with input layouts and dtypes."""
    for op in OPERATORS:
        for layout in LAYOUTS:
            if layout != torch.strided and not op.supports_sparse_layout(layout):
                continue
            dtypes = sorted_dtypes(op.dtypes)
            if not whole:
                key = op.full_name + short(layout)
                count = SAMPLED_DTYPES if layout == torch.strided else 1
                dtypes = choose(key, dtypes, count)
            for dtype in dtypes:
                yield op, layout, dtype


def case_name(op: OpInfo, layout: torch.layout, dtype: torch.dtype) -> str:
    """Returns the name of a case for reports and ``pytest -k``."""
    names = [op.full_name, short(dtype)]
    if layout != torch.strided:
        names.insert(1, short(layout))
    return "-".join(names)


def has_sparse_samples(op: OpInfo, layout: torch.layout) -> bool:
    """Returns whether the database has samples with this layout."""
    function = getattr(op, f"sample_inputs_{short(layout)}_func")
    return bool(function.__name__ != "_sample_inputs_unspecified")


def made_sparse(
    dense: Iterable[SampleInput], layout: torch.layout
) -> Iterator[SampleInput]:
    """Converts the inputs of dense samples to sparse, as PyTorch's tests do."""
    compressed = layout != torch.sparse_coo
    blocks = layout in (torch.sparse_bsr, torch.sparse_bsc)
    for sample in dense:
        dims = sample.input.dim()
        if dims != 2 and (compressed or dims == 0):
            continue
        value = sample.input.detach()
        sparse = value.to_sparse(layout=layout, blocksize=(1, 1) if blocks else None)
        sample.input = sparse.requires_grad_(sample.input.requires_grad)
        yield sample


def names_a_device(sample: SampleInput) -> bool:
    """Returns whether a sample contains a tensor or a device."""
    return any(
        isinstance(leaf, (Tensor, torch.device)) or leaf == "cpu"
        for leaf in pytree.tree_leaves((sample.input, sample.args, sample.kwargs))
    )


def samples(
    op: OpInfo, layout: torch.layout, dtype: torch.dtype, whole: bool
) -> list[tuple[int, SampleInput]]:
    """Yields the samples of a case on the CPU, with their numbers."""
    grad = op.supports_autograd and dtype in op.backward_dtypes
    grad = grad and (dtype.is_floating_point or dtype.is_complex)
    torch.manual_seed(0)
    if layout == torch.strided:
        made = op.sample_inputs("cpu", dtype, requires_grad=grad)
    elif has_sparse_samples(op, layout):
        made = op.sample_inputs_sparse(layout, "cpu", dtype, requires_grad=grad)
    else:
        made = made_sparse(op.sample_inputs("cpu", dtype, requires_grad=grad), layout)
    numbered = [each for each in enumerate(made) if names_a_device(each[1])]
    if whole:
        return numbered
    return choose(case_name(op, layout, dtype), numbered, SAMPLED_INPUTS)
