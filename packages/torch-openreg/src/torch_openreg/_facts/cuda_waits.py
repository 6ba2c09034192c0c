# SPDX-License-Identifier: BSD-3-Clause
"""Table of the operators that make the host wait on CUDA, with the conditions.

Each row names the function in PyTorch's sources. If the CPU uses the same function, a
test runs it and finds the values that PyTorch 2.13 reads. Functions for CUDA alone were
read in the sources and have not been run. An operator outside the table waits only if
it is a copy, or if PyTorch tags its result as data-dependent: see ``_waits.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from torch_openreg._facts import cuda_conditions as when
from torch_openreg._facts.cuda_conditions import Call

Condition = Callable[[Call], str | None]


class Rule(NamedTuple):
    """The condition under which an operator makes the host wait on CUDA.

    Attributes:
        condition: Returns the cause of the wait for a call, or None.
        summary: The condition in words.
        source: File in ``aten/src/ATen/native``, and function.
    """

    condition: Condition
    summary: str
    source: str


_MASK = "an index is a mask on the device, or an integer tensor on the host"
_ERRORS = "always: the host reads the error code of the factorization"
_CHECKED = "check_errors=True"
_DENSE = "the input is strided: the host reads the number of nonzero elements"
_INDEX = "IndexingUtils.h: expandTensors"
_PUT = (
    when.index_put,
    "as for index, except that one mask and one host number make it masked_fill_; also "
    "if the value is a number or a 0-dim host tensor",
    "TensorAdvancedIndexing.cpp: _index_put_impl_, canDispatchToMaskedFill",
)

# Keys are operators, or overloads if the overloads differ.
RULES: dict[str, Rule] = {
    # ---- values and shapes that depend on data
    "aten::_local_scalar_dense": Rule(
        when.always, "always", "cuda/CUDAScalar.cu: _local_scalar_dense_cuda"
    ),
    "aten::nonzero": Rule(when.always, "always", "cuda/Nonzero.cu: nonzero_out_cuda"),
    "aten::nonzero_static": Rule(
        when.never, "never", "cuda/Nonzero.cu: nonzero_static_out_cuda"
    ),
    "aten::masked_select": Rule(
        when.always, "always", "cuda/IndexKernel.cpp: masked_select_out_cuda_impl"
    ),
    "aten::_unique": Rule(when.always, "always", "cuda/Unique.cu: _unique_cuda"),
    "aten::_unique2": Rule(when.always, "always", "cuda/Unique.cu: _unique2_cuda"),
    "aten::unique_dim": Rule(when.always, "always", "cuda/Unique.cu: unique_dim_cuda"),
    "aten::unique_consecutive": Rule(
        when.always, "always", "cuda/Unique.cu: unique_consecutive_cuda"
    ),
    "aten::unique_dim_consecutive": Rule(
        when.always, "always", "cuda/Unique.cu: unique_dim_consecutive_cuda"
    ),
    "aten::repeat_interleave.Tensor": Rule(
        when.no_output_size, "output_size is not given", "Repeat.h: repeat_interleave"
    ),
    "aten::bincount": Rule(
        when.not_empty,
        "the input is not empty: the host reads the smallest and largest value",
        "cuda/SummaryOps.cu: _bincount_cuda_template",
    ),
    "aten::equal": Rule(
        when.compared,
        "the sizes are equal, and the tensors are not the same view of one memory",
        "cuda/Equal.cpp: cuda_equal",
    ),
    "aten::allclose": Rule(when.always, "always", "TensorCompare.cpp: allclose"),
    # ---- indices
    "aten::index": Rule(when.index, _MASK, _INDEX),
    "aten::_unsafe_index": Rule(when.index, _MASK, _INDEX),
    "aten::index_put": Rule(*_PUT),
    "aten::index_put_": Rule(*_PUT),
    "aten::_index_put_impl_": Rule(*_PUT),
    "aten::_unsafe_index_put": Rule(*_PUT),
    "aten::masked_fill.Tensor": Rule(
        when.value_on_device,
        "the value is on the device",
        "cuda/Indexing.cu: masked_fill__cuda",
    ),
    "aten::masked_fill_.Tensor": Rule(
        when.value_on_device,
        "the value is on the device",
        "cuda/Indexing.cu: masked_fill__cuda",
    ),
    "aten::index_fill.int_Tensor": Rule(
        when.value_on_device,
        "the value is on the device",
        "TensorAdvancedIndexing.cpp: index_fill_",
    ),
    "aten::index_fill_.int_Tensor": Rule(
        when.value_on_device,
        "the value is on the device",
        "TensorAdvancedIndexing.cpp: index_fill_",
    ),
    "aten::masked_scatter": Rule(
        when.never, "never", "cuda/IndexKernel.cpp: masked_scatter__cuda"
    ),
    "aten::masked_scatter_": Rule(
        when.never, "never", "cuda/IndexKernel.cpp: masked_scatter__cuda"
    ),
    "aten::embedding_renorm_": Rule(
        when.never, "never", "cuda/Embedding.cu: embedding_renorm_cuda_"
    ),
    # ---- copies of numbers
    "aten::copy_": Rule(
        when.copied_number,
        "as for every copy; also when a number is copied into one element (x[0] = 1.0)",
        "../TensorIndexing.h: copy_to; cuda/Copy.cu: copy_kernel_cuda",
    ),
    "aten::_foreach_copy_": Rule(
        when.foreach_copied,
        "a tensor is copied from or to the host without non_blocking=True",
        "ForeachOpsKernels.cpp: foreach_tensor_copy_list_kernel_slow_",
    ),
    "aten::where.self": Rule(
        when.mixed_devices,
        "an operand is a 0-dim host tensor",
        "TensorCompare.cpp: where_self_out",
    ),
    # ---- ranges, distributions, searches
    **dict.fromkeys(
        (
            "aten::linspace.Tensor_Tensor",
            "aten::linspace.Tensor_Scalar",
            "aten::linspace.Scalar_Tensor",
            "aten::logspace.Tensor_Tensor",
            "aten::logspace.Tensor_Scalar",
            "aten::logspace.Scalar_Tensor",
        ),
        Rule(
            when.ends_on_device,
            "start or end is a device tensor",
            "RangeFactories.cpp: linspace, logspace",
        ),
    ),
    "aten::normal.float_Tensor": Rule(
        when.checks_std,
        "std is not empty: the host checks its smallest value",
        "DistributionTemplates.h: CHECK_NORMAL_TENSOR_STD",
    ),
    "aten::normal.Tensor_Tensor": Rule(
        when.checks_std,
        "std is not empty: the host checks its smallest value",
        "DistributionTemplates.h: CHECK_NORMAL_TENSOR_STD",
    ),
    "aten::multinomial": Rule(
        when.never,
        "never: the device checks the probabilities",
        "Distributions.cpp: multinomial_out, _assert_async",
    ),
    "aten::_assert_async": Rule(
        when.never, "never", "cuda/TensorCompare.cu: _assert_async_cuda"
    ),
    "aten::searchsorted": Rule(
        when.sorter, "a sorter is given", "BucketizationUtils.h: searchsorted_pre_check"
    ),
    "aten::histc": Rule(
        when.no_range,
        "min == max: the host reads the smallest and largest value",
        "cuda/SummaryOps.cu: _histc_cuda_template",
    ),
    "aten::isin.Tensor_Tensor": Rule(
        when.sorts_unique,
        "assume_unique=False, and at least 10 * elements.numel() ** 0.145 test "
        "elements",
        "TensorCompare.cpp: isin_sorting",
    ),
    "aten::mode": Rule(
        when.long_slices,
        "a slice has more than 2048 elements",
        "cuda/TensorModeKernel.cu: launch_apply_mode_kernel",
    ),
    "aten::segment_reduce": Rule(
        when.checks_lengths,
        "lengths are given, and unsafe=False",
        "SegmentReduce.cpp: segment_reduce_kernel",
    ),
    **dict.fromkeys(
        ("aten::std", "aten::var"),
        Rule(when.never, "never", "ReduceOps.cpp: std_var_out, for the CPU only"),
    ),
    **dict.fromkeys(
        (
            "aten::histogram",
            "aten::_histogramdd_bin_edges",
            "aten::_histogramdd_from_bin_cts",
            "aten::_histogramdd_from_bin_tensors",
        ),
        Rule(
            when.never,
            "never: CUDA does not have this operator",
            "native_functions.yaml",
        ),
    ),
    # ---- losses
    **dict.fromkeys(
        ("aten::_ctc_loss", "aten::_ctc_loss_backward"),
        Rule(
            when.always,
            "always: the lengths are copied to or from the device",
            "cuda/LossCTC.cu: ctc_loss_gpu_template, ctc_loss_backward_gpu_template",
        ),
    ),
    "aten::multilabel_margin_loss_forward": Rule(
        when.never, "never", "cuda/MultiLabelMarginCriterion.cu"
    ),
    **dict.fromkeys(
        ("aten::_scaled_mm", "aten::_scaled_mm_v2"),
        Rule(when.never, "never", "cuda/ScaledBlas.cpp: _scaled_mm_cuda"),
    ),
    "aten::rrelu_with_noise": Rule(
        when.never, "never", "cuda/RreluWithNoise.cu: rrelu_with_noise_cuda"
    ),
    # ---- linear algebra
    "aten::_linalg_check_errors": Rule(
        when.always, "always", "BatchLinearAlgebra.cpp: _linalg_check_errors"
    ),
    "aten::cholesky": Rule(when.always, _ERRORS, "BatchLinearAlgebra.cpp: cholesky"),
    "aten::cholesky_inverse": Rule(
        when.always, _ERRORS, "BatchLinearAlgebra.cpp: cholesky_inverse"
    ),
    "aten::_linalg_eigh": Rule(
        when.always, _ERRORS, "BatchLinearAlgebra.cpp: _linalg_eigh_out"
    ),
    "aten::_linalg_svd": Rule(
        when.always, _ERRORS, "BatchLinearAlgebra.cpp: _linalg_svd_out"
    ),
    "aten::linalg_eig": Rule(
        when.always, _ERRORS, "BatchLinearAlgebra.cpp: linalg_eig_out"
    ),
    "aten::_linalg_eigvals": Rule(
        when.always, _ERRORS, "BatchLinearAlgebra.cpp: linalg_eigvals_out"
    ),
    "aten::linalg_eigvals": Rule(
        when.always, _ERRORS, "BatchLinearAlgebra.cpp: linalg_eigvals_out"
    ),
    "aten::linalg_lstsq": Rule(
        when.always, _ERRORS, "BatchLinearAlgebra.cpp: linalg_lstsq_out"
    ),
    **{
        f"aten::{name}": Rule(
            when.checks_errors, _CHECKED, f"BatchLinearAlgebra.cpp: {name}_out"
        )
        for name in (
            "linalg_cholesky_ex",
            "linalg_inv_ex",
            "linalg_ldl_factor_ex",
            "linalg_lu_factor_ex",
            "_linalg_solve_ex",
        )
    },
    "aten::linalg_matrix_exp": Rule(
        when.matrices,
        "the matrices are larger than 1x1: the host reads their norms",
        "LinearAlgebra.cpp: mexp_impl",
    ),
    "aten::linalg_pinv.atol_rtol_tensor": Rule(
        when.always, _ERRORS, "LinearAlgebra.cpp: linalg_pinv"
    ),
    "aten::linalg_lu_solve": Rule(
        when.never, "never", "cuda/linalg/BatchLinearAlgebra.cpp: lu_solve_kernel"
    ),
    "aten::linalg_ldl_solve": Rule(
        when.never, "never", "cuda/linalg/BatchLinearAlgebra.cpp: ldl_solve_kernel"
    ),
    "aten::cholesky_solve": Rule(
        when.never,
        "never",
        "cuda/linalg/BatchLinearAlgebra.cpp: _cholesky_solve_helper_cuda",
    ),
    # ---- sparse and nested tensors
    **{
        f"aten::_to_sparse{suffix}": Rule(
            when.dense, _DENSE, f"TensorConversions.cpp: dense_to_sparse{suffix}"
        )
        for suffix in ("", "_csr", "_csc", "_bsr", "_bsc")
    },
    "aten::_coalesce": Rule(
        when.several_entries,
        "the tensor has 2 entries or more",
        "sparse/cuda/SparseCUDATensor.cu: _coalesce_sparse_cuda",
    ),
    "aten::sparse_compressed_tensor.comp_plain_value": Rule(
        when.always,
        "always: the host computes the size",
        "sparse/SparseCsrTensor.cpp: sparse_compressed_tensor",
    ),
    **dict.fromkeys(
        (
            "aten::_nested_tensor_from_mask",
            "aten::_nested_tensor_from_mask_left_aligned",
        ),
        Rule(
            when.always,
            "always: the sizes are copied to the host",
            "nested/NestedTensorMath.cpp: NestedTensor_nested_tensor_from_mask",
        ),
    ),
    "aten::_padded_dense_to_jagged_forward": Rule(
        when.no_total,
        "total_L is not given",
        "nested/cuda/NestedTensorTransformerFunctions.cu: dense_to_jagged_forward",
    ),
    # ---- quantization
    "aten::fake_quantize_per_channel_affine_cachemask": Rule(
        when.checks_zero_points,
        "the zero points are integers: the host checks their range",
        "quantized/FakeQuantPerChannelAffine.cpp",
    ),
    **dict.fromkeys(
        (
            "aten::_fake_quantize_learnable_per_tensor_affine",
            "aten::_fake_quantize_learnable_per_tensor_affine_backward",
            "aten::quantize_per_tensor.tensor_qparams",
        ),
        Rule(
            when.always,
            "always: the host reads scale and zero point",
            "quantized/FakeQuantPerTensorAffine.cpp, quantized/QTensor.cpp",
        ),
    ),
    "aten::_fused_moving_avg_obs_fq_helper": Rule(
        when.per_row,
        "per_row_fake_quant=True",
        "quantized/cuda/FusedObsFakeQuant.cu",
    ),
}
