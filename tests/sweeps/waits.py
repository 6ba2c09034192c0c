# SPDX-License-Identifier: BSD-3-Clause
"""Operators whose first call may wait for the stream, with the reason."""

from __future__ import annotations

import torch

# Not seen by a dispatch mode.
NO_OPERATOR = "no operator"

_TAGS = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}
TAGGED = "PyTorch's tag says that its results depend on values."
WAITS: dict[str, frozenset[str]] = {
    "It reads values, and PyTorch has no tag that says so.": frozenset(
        {
            "aten::_linalg_check_errors",  # raises an exception that depends on them
            "aten::index_put",  # masks
            "aten::linspace.Tensor_Tensor",  # the limits, with item()
            "aten::logspace.Tensor_Tensor",
            "aten::logspace.Tensor_Scalar",
            "aten::logspace.Scalar_Tensor",
            "aten::masked_scatter_backward",
            "aten::multinomial",  # raises an exception that depends on them
            "aten::normal.Tensor_Tensor",  # raises an exception for negative ones
            "aten::segment_reduce",  # lengths
        }
    ),
    "PyTorch warns that it is deprecated or new, which is for the caller's "
    "thread.": frozenset(
        {
            "aten::cholesky",
            "aten::index_reduce",  # only of a tensor without dimensions
            "aten::triangular_solve",
        }
    ),
    "A sparse tensor has as many elements as values say.": frozenset(
        {
            "aten::_to_sparse",
            "aten::_to_sparse.sparse_dim",
            "aten::_sparse_mm_reduce_impl",
            "aten::sparse_sampled_addmm",
        }
    ),
    "Numbers of the host are copied to the device, or a derivative reads a value "
    "with item().": frozenset({NO_OPERATOR}),
}


def has_tag(operator: str) -> bool:
    """Returns whether PyTorch marks an operator's results as dependent on values.

    Args:
        operator: Such as ``"aten::index.Tensor"``.
    """
    namespace, _, name = operator.partition("::")
    packet, _, overload = name.partition(".")
    found = getattr(getattr(torch.ops, namespace), packet, None)
    return found is not None and bool(
        _TAGS & set(getattr(found, overload or "default").tags)
    )


def reason_to_wait(operator: str) -> str | None:
    """Returns why an operator may wait for the stream, or None."""
    for reason, names in WAITS.items():
        if operator in names:
            return reason
    return TAGGED if has_tag(operator) else None
