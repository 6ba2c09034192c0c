# SPDX-License-Identifier: BSD-3-Clause
"""The class of each operator of PyTorch by its name, where no rule counts its work."""

from __future__ import annotations

import re
from collections.abc import Iterable

# Nothing runs on the device: metadata, and memory that is not written.
NOTHING = frozenset({
    "empty", "empty_like", "empty_strided", "empty_permuted", "new_empty",
    "new_empty_strided", "_unsafe_view", "record_stream", "set_", "resize_", "detach",
    "detach_", "alias", "lift", "lift_fresh", "is_pinned", "size", "stride", "numel",
    "_version", "is_nonzero", "_fused_sdp_choice", "_nested_tensor_size", "sym_size",
    "sym_stride", "sym_numel", "sym_storage_offset", "dense_dim", "transpose_", "t_",
    "squeeze_", "unsqueeze_", "swapaxes_", "swapdims_", "as_strided_", "requires_grad_",
    "is_floating_point", "is_complex", "is_signed", "is_contiguous", "is_leaf",
    "is_conj", "is_neg", "is_inference", "get_device", "dim", "storage_offset",
    "sym_is_contiguous", "retain_grad", "retains_grad", "output_nr", "_is_zerotensor",
    "is_set_to", "result_type", "promote_types", "can_cast",
    "_debug_has_internal_overlap", "_has_same_storage_numel", "data", "set_data",
    "sparse_dim", "_nnz", "is_coalesced", "q_scale", "q_zero_point", "qscheme",
    "_efficientzerotensor", "_has_compatible_shallow_copy_type", "is_same_size",
    "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_tensors", "resize_as_",
    "unsafe_chunk", "unsafe_split", "unsafe_split_with_sizes",
})  # fmt: skip

# The class of operators by their names; the first that matches decides.
_NAMES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        ("optimizer", r"_fused_(adam|adamw|sgd|adagrad)|_amp_"),
        ("pointwise", r"_foreach_(?!norm|max$|powsum)|_thnn_fused_|_thnn_diff"),
        ("rnn", r"(_cudnn_|miopen_|quantized_|mkldnn_)?(rnn|lstm|gru)"),
        ("random", r".*dropout|rand|normal|uniform|bernoulli|multinomial|exponential"
                   r"|cauchy|geometric|log_normal|poisson$|binomial|_philox|rrelu"
                   r"|_standard_gamma|_dirichlet|_sample_dirichlet|_sobol"),
        ("reduction", r"linalg_(vector_norm|vecdot|matrix_norm|_powsum)|_foreach_norm"),
        ("pointwise", r"linalg_(cross|diagonal)|special_|.*_loss(?!_nd)"),
        ("linalg", r"linalg_|_linalg_|cholesky|_cholesky|lu_|_lu_|triangular_solve|qr$"
                   r"|svd|ormqr|orgqr|geqrf|inverse|pinverse|slogdet|logdet|det$|lobpcg"
                   r"|matrix_exp|matrix_power|_spsolve"),
        ("fft", r"fft_|_fft_|stft|istft"),
        ("norm", r".*(layer_norm|batch_norm|group_norm|instance_norm|rms_norm|softmax"
                 r"|weight_norm|native_norm|local_response_norm|renorm)"),
        ("pool", r".*(pool[123]d|upsample_|grid_sampler|affine_grid|im2col|col2im"
                 r"|pixel_(un)?shuffle|channel_shuffle|interpolate)"),
        ("sort", r"(arg)?sort$|msort|topk|kthvalue|(nan)?median|mode$|_?unique|quantile"
                 r"|nanquantile|isin|histc|histogram|_histogram|bincount"),
        ("scan", r"cum|logcumsumexp|_logcumsumexp|_cum|nonzero|masked_select|argwhere"
                 r"|searchsorted|bucketize|repeat_interleave|coalesce|_coalesce"),
        ("scatter", r"(scatter|index_(add|copy|fill|put|reduce)|(_unsafe)?_index_put"
                    r"|put|masked_scatter|embedding.*backward|_embedding_bag.*backward"
                    r"|slice_scatter|select_scatter|diagonal_scatter|as_strided_scatter"
                    r"|(slice|select|diagonal|unfold|index_select)_backward|segment_reduce"
                    r"|_unsafe_masked_index_put)"),
        ("gather", r"(gather|embedding|_embedding_bag|index|_unsafe_index|take"
                   r"|_unsafe_masked"
                   r"|embedding_renorm|tril_indices|triu_indices|_jagged|_padded"
                   r"|_pack_padded|_pad_packed|_nested)"),
        ("copy", r"(clone|chalf|column_stack|copy|_copy|_to_|to_|_cast|cat|_cat|concat"
                 r"|stack|_stack|hstack"
                 r"|vstack|dstack|_chunk_cat|fill|zero|one|full|new_|arange|linspace"
                 r"|logspace|eye|repeat|tile|roll|flip|rot90|constant_pad|.*_pad[123]d"
                 r"|_pad|pad|contiguous|_conj_physical|complex|block_diag|tril|triu|diag"
                 r"|_reshape|_pin_memory|scalar_tensor|.*_window|_local_scalar|item"
                 r"|_resize|_shape_as|expand_copy|.*_copy$|lift|split_with_sizes_copy"
                 r"|_spdiags|trace_backward|vander|kron|cartesian|combinations|from_file"
                 r"|meshgrid|masked_fill|_fill)"),
        ("reduction", r"(sum|nansum|mean|nanmean|prod|amax|amin|aminmax|_aminmax|max$"
                      r"|min$"
                      r"|argmax|argmin|all$|any$|std|var|norm$|frobenius|nuclear|logsumexp"
                      r"|count_nonzero|trace|equal$|allclose|dist$|_is_all|_is_any|value_sel"
                      r"|sum_to_size|corrcoef|cov|hash_tensor|_assert|trapz|trapezoid"
                      r"|_foreach_max|_foreach_powsum|cosine_similarity|pairwise_dist"
                      r"|choose_qparams|_choose_qparams|_fused_moving_avg|fused_moving)"),
        ("gemm", r"(_?sparse_.*mm|hspmm|smm|sspaddmm|_sparse_addmm|_cslt|_cdist|cdist"
                 r"|_pdist|pdist|_trilinear|bilinear|matmul|tensordot|einsum|chain_matmul"
                 r"|inner|sparse_sampled)"),
    )
)  # fmt: skip
_TAGS = {"pointwise": "pointwise", "reduction": "reduction"}


def kind_of(name: str, tags: Iterable[str] = ()) -> str:
    """Returns the class of an operator that has no rule.

    Args:
        name: The name without namespace and overload.
        tags: PyTorch's tags of the operator.
    """
    for kind, pattern in _NAMES:
        if pattern.match(name):
            return kind
    for tag in tags:
        if tag in _TAGS:
            return _TAGS[tag]
    if name.strip("_") in _ELEMENTWISE or name.rstrip("_") in _ELEMENTWISE:
        return "pointwise"
    return "pointwise" if name.endswith("_backward") else "unknown"


# Operators without the tag, which are element by element.
_ELEMENTWISE = frozenset({
    "where", "lerp", "clamp", "sub", "rsub", "mul", "div", "add", "pow", "relu", "gelu",
    "silu", "elu", "selu", "celu", "mish", "hardswish", "hardtanh", "hardsigmoid",
    "leaky_relu", "threshold", "glu", "prelu", "_prelu_kernel", "sigmoid", "tanh",
    "abs", "frexp", "polar", "conj_physical", "nan_to_num", "dequantize", "isclose",
    "cross", "gradient", "diff", "bitwise_not", "logit", "log_sigmoid", "_masked_scale",
    "threshold_backward", "gelu_backward", "silu_backward", "glu_jvp", "mvlgamma",
    "log_sigmoid_forward", "logical_not", "float_power", "true_divide", "_add_relu",
    "fake_quantize_per_tensor_affine", "quantize_per_tensor", "quantize_per_channel",
    "polygamma", "clip", "outer", "ger", "addr", "view_as_complex_copy", "sgn",
    "mse_loss", "_transform_bias_rescale_qkv", "rad2deg", "deg2rad", "hypot", "ldexp",
    "xlogy", "bitwise_and", "bitwise_or", "bitwise_xor", "and", "or", "xor", "iand",
    "ior", "ixor", "lshift", "rshift", "ilshift", "irshift", "floor_divide",
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div", "heaviside",
    "gcd", "lcm", "isnan", "isreal", "fix", "hardshrink", "softshrink", "relu6",
    "square", "_saturate_weight_to_fp16", "fake_quantize_per_channel_affine",
    "fake_quantize_per_tensor_affine_cachemask",
    "fake_quantize_per_channel_affine_cachemask",
    "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams",
    "_compute_linear_combination", "_fake_quantize_learnable_per_tensor_affine",
    "quantize_per_tensor_dynamic", "_fake_quantize_learnable_per_channel_affine",
    "int_repr", "negative", "absolute", "multiply", "divide", "subtract", "less",
    "greater", "less_equal", "greater_equal", "not_equal", "eq", "ne", "lt", "gt", "le",
    "ge",
})  # fmt: skip
