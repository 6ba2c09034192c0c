# SPDX-License-Identifier: BSD-3-Clause
"""Which operators may wait for their stream when they are called first, and why."""

from __future__ import annotations

import torch

# What makes a tensor of the device from numbers of the host; no operator of PyTorch.
HOST_DATA = "torch.tensor"

_TAGS = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}
TAGGED = "PyTorch's tag says that its results depend on values."
WAITS: dict[str, frozenset[str]] = {
    "It reads values, and PyTorch has no tag that says so.": frozenset(
        {
            "aten::_linalg_check_errors",  # raises an exception for what they say
            "aten::segment_reduce",  # lengths
            "aten::linspace.Tensor_Tensor",  # the limits, with item()
            "aten::linspace.Tensor_Scalar",
            "aten::linspace.Scalar_Tensor",
            "aten::logspace.Tensor_Tensor",
            "aten::logspace.Tensor_Scalar",
            "aten::logspace.Scalar_Tensor",
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
    "PyTorch has no meta kernel of it.": frozenset(
        {
            "aten::_histogramdd_from_bin_tensors",
            "aten::fractional_max_pool3d_backward",
            "aten::geqrf",
            "aten::histogram.bins_tensor",
            "aten::multi_margin_loss_backward",
            "aten::multilabel_margin_loss_backward",
        }
    ),
    "Its kernel is in Python.": frozenset(
        {
            "torch_nn::_linear_cross_entropy_batch_chunked",
            "torch_nn::_linear_cross_entropy_batch_chunked_no_reduction",
        }
    ),
    "abs, which it calls, is a function that PyTorch asks the device for.": frozenset(
        {
            "aten::_foreach_abs",
            "aten::abs",
            "aten::isinf",
            "aten::logsumexp",
        }
    ),
    "Found by a run over the database, and not looked into.": frozenset(
        {
            "aten::_cdist_backward",
            "aten::_conj_physical",
            "aten::_efficientzerotensor",
            "aten::_fft_c2c",
            "aten::_fft_c2r",
            "aten::_linalg_svd",
            "aten::_safe_softmax",
            "aten::_scaled_mm",
            "aten::_scaled_mm_v2",
            "aten::_unsafe_masked_index",
            "aten::_unsafe_masked_index_put_accumulate",
            "aten::any",
            "aten::any.dim",
            "aten::arange",
            "aten::arange.start",
            "aten::arange.start_step",
            "aten::bitwise_and.Tensor",
            "aten::bitwise_left_shift.Tensor",
            "aten::bitwise_not",
            "aten::bitwise_or.Tensor",
            "aten::bitwise_right_shift.Tensor",
            "aten::bitwise_xor.Tensor",
            "aten::clamp.Tensor",
            "aten::clone",
            "aten::complex",
            "aten::cummax",
            "aten::cummin",
            "aten::cumsum",
            "aten::deg2rad",
            "aten::div.Tensor",
            "aten::fill_.Scalar",
            "aten::flip",
            "aten::frexp.Tensor",
            "aten::gather",
            "aten::gcd",
            "aten::index_put",
            "aten::lcm",
            "aten::linalg_eig",
            "aten::linalg_ldl_solve",
            "aten::linalg_lu_solve",
            "aten::linalg_pinv.atol_rtol_tensor",
            "aten::logcumsumexp",
            "aten::logical_and",
            "aten::logical_not",
            "aten::logical_not_",
            "aten::logical_or_",
            "aten::lu_unpack",
            "aten::masked_scatter_backward",
            "aten::max_unpool2d",
            "aten::min",
            "aten::mul_.Scalar",
            "aten::multinomial",
            "aten::new_ones",
            "aten::new_zeros",
            "aten::nonzero_static",
            "aten::ones",
            "aten::ones_like",
            "aten::polar",
            "aten::rad2deg",
            "aten::randint",
            "aten::randint.low",
            "aten::remainder.Scalar",
            "aten::rot90",
            "aten::scalar_tensor",
            "aten::silu",
            "aten::soft_margin_loss_backward",
            "aten::sum.dim_IntList",
            "aten::tril_indices",
            "aten::triu_indices",
            "aten::zeros",
        }
    ),
    "Numbers of the host are copied to the device.": frozenset({HOST_DATA}),
}


def has_tag(operator: str) -> bool:
    """Whether PyTorch says that results of an operator depend on values.

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
    """Why an operator may wait for the stream, if it may."""
    for reason, names in WAITS.items():
        if operator in names:
            return reason
    return TAGGED if has_tag(operator) else None
