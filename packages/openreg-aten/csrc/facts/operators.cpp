// SPDX-License-Identifier: BSD-3-Clause
// The table of operator facts. Review it for each version of PyTorch.
#include "facts/operators.h"

#include <ATen/cpu/Utils.h>

#include <algorithm>
#include <array>

namespace openreg::aten {
namespace {

using c10::ScalarType;

constexpr uint64_t kBool = dtype_bit(ScalarType::Bool);
constexpr uint64_t kIntegers = dtype_bit(ScalarType::Byte) |
    dtype_bit(ScalarType::Char) | dtype_bit(ScalarType::Short) |
    dtype_bit(ScalarType::Int) | dtype_bit(ScalarType::Long);
constexpr uint64_t kHalf = dtype_bit(ScalarType::Half);
constexpr uint64_t kBFloat16 = dtype_bit(ScalarType::BFloat16);
// Slow only on a CPU without bfloat16 instructions.
constexpr uint64_t kBFloat16Unaided = uint64_t{1} << 63;
constexpr uint64_t kComplexHalf = dtype_bit(ScalarType::ComplexHalf);
constexpr uint64_t kComplexFloat = dtype_bit(ScalarType::ComplexFloat);
constexpr uint64_t kComplexDouble = dtype_bit(ScalarType::ComplexDouble);

struct Row {
  std::string_view name;
  uint32_t facts;
  uint64_t missing_dtypes = 0;
  uint64_t slow_dtypes = 0;
};

// A name without an overload applies to all overloads. For dtypes it also
// applies to the in-place variant. Sorted by name.
// [docs: facts]
constexpr auto kRows = std::to_array<Row>({
    {"_quantized::_wrapped_linear_prepack", kReturnsCustomClass},
    {"_quantized::_wrapped_quantized_linear_prepacked.W_prepack", kTakesHost},
    {"_quantized::linear_prepack_fp16_legacy", kReturnsCustomClass},
    {"_quantized::linear_prepack_legacy", kReturnsCustomClass},
    {"_quantized::wrapped_fbgemm_linear_fp16_weight.W", kTakesHost},
    {"_quantized::wrapped_fbgemm_pack_gemm_matrix_fp16", kReturnsCustomClass},
    {"aten::__ilshift__", kRefusesFloats},
    {"aten::__irshift__", kRefusesFloats},
    {"aten::__lshift__", kRefusesFloats},
    {"aten::__rshift__", kRefusesFloats},
    {"aten::_adaptive_avg_pool2d", 0, 0, kHalf | kBFloat16Unaided},
    {"aten::_adaptive_avg_pool2d_backward", 0, 0, kHalf | kBFloat16Unaided},
    {"aten::_addmm_activation", 0, 0, kHalf | kBFloat16Unaided},
    {"aten::_batch_norm_with_update",
     kMixesDtypes | kFollowsParameters,
     0,
     kHalf | kBFloat16Unaided},
    {"aten::_ctc_loss", kReadsValues},
    {"aten::_ctc_loss.input_lengths", kTakesHost},
    {"aten::_ctc_loss.target_lengths", kTakesHost},
    {"aten::_ctc_loss_backward.input_lengths", kTakesHost},
    {"aten::_ctc_loss_backward.target_lengths", kTakesHost},
    {"aten::_fft_c2c", 0, kHalf | kComplexHalf},
    {"aten::_fft_c2r", 0, kHalf | kComplexHalf},
    {"aten::_fft_r2c", 0, kHalf | kComplexHalf},
    {"aten::_fused_adagrad_.lr", kTakesHost},
    {"aten::_fused_adam_.lr", kTakesHost},
    {"aten::_fused_adamw_.lr", kTakesHost},
    {"aten::_fused_sgd_.lr", kTakesHost},
    {"aten::_index_put_impl_.indices", kTakesHost},
    {"aten::_linalg_check_errors", kReadsValues},
    {"aten::_native_batch_norm_legit",
     kMixesDtypes | kFollowsParameters,
     0,
     kHalf | kBFloat16Unaided},
    {"aten::_nested_from_padded.cpu_nested_shape_example", kTakesHost},
    {"aten::_pack_padded_sequence", kReadsValues},
    {"aten::_pack_padded_sequence.lengths", kTakesHost},
    {"aten::_pad_packed_sequence", kReadsValues},
    {"aten::_padded_dense_to_jagged_forward", kReadsValues},
    {"aten::_scaled_dot_product_flash_attention_for_cpu",
     kDrawsNoNumbers | kKeepsFloat32,
     0,
     kHalf | kBFloat16},
    {"aten::_scaled_dot_product_flash_attention_for_cpu_backward",
     kMixesDtypes,
     0,
     kHalf | kBFloat16},
    {"aten::_sparse_mm_reduce_impl", kReadsRequiresGrad},
    {"aten::_sparse_mm_reduce_impl_backward", kReadsRequiresGrad},
    {"aten::_upsample_bilinear2d_aa", 0, kHalf | kBFloat16},
    {"aten::_upsample_bilinear2d_aa_backward", 0, kHalf | kBFloat16},
    {"aten::abs", 0, kBool},
    {"aten::acos", 0, kComplexHalf},
    {"aten::acosh", 0, kComplexHalf},
    {"aten::addbmm", kSkipsResizeWarning, 0, kHalf | kBFloat16Unaided},
    {"aten::addmm", 0, 0, kHalf | kBFloat16Unaided},
    {"aten::angle", 0, kComplexHalf},
    {"aten::arange", kSkipsResizeWarning | kReadsNumbers},
    {"aten::asin", 0, kComplexHalf},
    {"aten::asinh", 0, kComplexHalf},
    {"aten::atan", 0, kComplexHalf},
    {"aten::atanh", 0, kComplexHalf},
    {"aten::avg_pool3d", 0, kHalf | kBFloat16},
    {"aten::avg_pool3d_backward", 0, kHalf | kBFloat16},
    {"aten::baddbmm", 0, 0, kHalf | kBFloat16Unaided},
    {"aten::batch_norm_backward",
     kMixesDtypes | kFollowsParameters,
     0,
     kHalf | kBFloat16Unaided},
    {"aten::bernoulli", kSkipsResizeWarning},
    {"aten::bernoulli_.float", kTakesAnySize},
    {"aten::binary_cross_entropy", 0, 0, kHalf},
    {"aten::binary_cross_entropy_backward", 0, 0, kHalf},
    {"aten::bitwise_and", kRefusesFloats},
    {"aten::bitwise_and_", kRefusesFloats},
    {"aten::bitwise_left_shift", kRefusesFloats},
    {"aten::bitwise_left_shift_", kRefusesFloats},
    {"aten::bitwise_not", kRefusesFloats},
    {"aten::bitwise_not_", kRefusesFloats},
    {"aten::bitwise_or", kRefusesFloats},
    {"aten::bitwise_or_", kRefusesFloats},
    {"aten::bitwise_right_shift", kRefusesFloats},
    {"aten::bitwise_right_shift_", kRefusesFloats},
    {"aten::bitwise_xor", kRefusesFloats},
    {"aten::bitwise_xor_", kRefusesFloats},
    {"aten::bmm", 0, 0, kHalf | kBFloat16Unaided},
    {"aten::cauchy_", kTakesAnySize},
    {"aten::convolution", 0, 0, kHalf | kBFloat16Unaided},
    {"aten::convolution_backward", 0, 0, kHalf | kBFloat16Unaided},
    {"aten::convolution_backward_overrideable", 0, 0, kHalf | kBFloat16Unaided},
    {"aten::convolution_overrideable", 0, 0, kHalf | kBFloat16Unaided},
    {"aten::cos", 0, kComplexHalf},
    {"aten::cosh", 0, kComplexHalf},
    {"aten::div", 0, kComplexHalf},
    {"aten::erfinv", 0, 0, kHalf | kBFloat16},
    {"aten::exp", 0, kComplexHalf},
    {"aten::exponential_", kTakesAnySize},
    {"aten::eye", kSkipsResizeWarning},
    {"aten::fbgemm_linear_fp16_weight.packed_weight", kTakesHost},
    {"aten::fbgemm_linear_fp16_weight_fp32_activation.packed_weight",
     kTakesHost},
    {"aten::fbgemm_linear_int8_weight.packed", kTakesHost},
    {"aten::fbgemm_linear_int8_weight_fp32_activation.packed", kTakesHost},
    {"aten::fbgemm_pack_gemm_matrix_fp16", kReturnsCustomClass},
    {"aten::fbgemm_pack_quantized_matrix", kReturnsCustomClass},
    {"aten::fft_fft", 0, kHalf | kComplexHalf},
    {"aten::fft_fft2", 0, kHalf | kComplexHalf},
    {"aten::fft_fftn", 0, kHalf | kComplexHalf},
    {"aten::fft_hfft", 0, kHalf | kComplexHalf},
    {"aten::fft_hfft2", 0, kHalf | kComplexHalf},
    {"aten::fft_hfftn", 0, kHalf | kComplexHalf},
    {"aten::fft_ifft", 0, kHalf | kComplexHalf},
    {"aten::fft_ifft2", 0, kHalf | kComplexHalf},
    {"aten::fft_ifftn", 0, kHalf | kComplexHalf},
    {"aten::fft_ihfft", 0, kHalf | kComplexHalf},
    {"aten::fft_ihfft2", 0, kHalf | kComplexHalf},
    {"aten::fft_ihfftn", 0, kHalf | kComplexHalf},
    {"aten::fft_irfft", 0, kHalf | kComplexHalf},
    {"aten::fft_irfft2", 0, kHalf | kComplexHalf},
    {"aten::fft_irfftn", 0, kHalf | kComplexHalf},
    {"aten::fft_rfft", 0, kHalf | kComplexHalf},
    {"aten::fft_rfft2", 0, kHalf | kComplexHalf},
    {"aten::fft_rfftn", 0, kHalf | kComplexHalf},
    {"aten::fill_.Scalar", kTakesAnySize},
    {"aten::fill_.Tensor", kTakesAnySize},
    {"aten::floor_divide", kPromotes, 0, kHalf | kBFloat16},
    {"aten::from_file", kStaysOnHost | kReadsValues},
    {"aten::gcd", kRefusesFloats},
    {"aten::gcd_", kRefusesFloats},
    {"aten::geometric_", kTakesAnySize},
    {"aten::grid_sampler_2d", 0, 0, kHalf | kBFloat16},
    {"aten::grid_sampler_2d_backward", 0, 0, kHalf | kBFloat16},
    {"aten::gru", 0, 0, kHalf | kBFloat16Unaided},
    {"aten::histc", kReadsNumbers, kIntegers},
    {"aten::index", kIsDynamicWithMasks},
    {"aten::index.indices", kTakesHost},
    {"aten::index_put.indices", kTakesHost},
    {"aten::index_put_.indices", kTakesHost},
    {"aten::lcm", kRefusesFloats},
    {"aten::lcm_", kRefusesFloats},
    {"aten::lerp", 0, kComplexHalf},
    {"aten::linalg_matrix_exp", 0, 0, kHalf | kBFloat16},
    {"aten::linspace", kSkipsResizeWarning},
    {"aten::log", 0, kComplexHalf},
    {"aten::log_normal_", kTakesAnySize},
    {"aten::log_sigmoid_forward", kSkipsResizeWarning},
    {"aten::logaddexp", 0, kComplexHalf},
    {"aten::logspace", kSkipsResizeWarning},
    {"aten::lstm", 0, 0, kHalf | kBFloat16Unaided},
    {"aten::mm", 0, 0, kHalf | kBFloat16Unaided},
    {"aten::multi_margin_loss", 0, kHalf | kBFloat16},
    {"aten::multi_margin_loss_backward", 0, kHalf | kBFloat16},
    {"aten::multilabel_margin_loss_backward", 0, kHalf | kBFloat16},
    {"aten::multilabel_margin_loss_forward", 0, kHalf | kBFloat16},
    {"aten::multinomial", kSkipsResizeWarning},
    {"aten::nansum", 0, kComplexHalf | kComplexFloat | kComplexDouble},
    {"aten::narrow_copy", kSkipsResizeWarning},
    {"aten::native_batch_norm",
     kMixesDtypes | kFollowsParameters,
     0,
     kHalf | kBFloat16Unaided},
    {"aten::native_batch_norm_backward",
     kMixesDtypes | kFollowsParameters,
     0,
     kHalf | kBFloat16Unaided},
    {"aten::normal.Tensor_Tensor", kReadsValues},
    {"aten::normal.Tensor_Tensor_out", kReadsValues},
    {"aten::normal.float_Tensor", kReadsValues},
    {"aten::normal.float_Tensor_out", kReadsValues},
    {"aten::normal_", kTakesAnySize},
    {"aten::pow", 0, kComplexHalf},
    {"aten::prod", 0, kComplexHalf},
    {"aten::random_", kTakesAnySize},
    {"aten::random_.from", kTakesAnySize},
    {"aten::random_.to", kTakesAnySize},
    {"aten::randperm", kSkipsResizeWarning},
    {"aten::range", kSkipsResizeWarning | kReadsNumbers},
    {"aten::rnn_relu", 0, 0, kHalf | kBFloat16Unaided},
    {"aten::rnn_tanh", 0, 0, kHalf | kBFloat16Unaided},
    {"aten::rrelu_with_noise", 0, kHalf},
    {"aten::rsqrt", 0, kComplexHalf},
    {"aten::segment_reduce", kReadsValues},
    {"aten::sigmoid", 0, kComplexHalf},
    {"aten::sigmoid_backward", 0, kComplexHalf},
    {"aten::sin", 0, kComplexHalf},
    {"aten::sinh", 0, kComplexHalf},
    {"aten::sqrt", 0, kComplexHalf},
    {"aten::sum", 0, kComplexHalf},
    {"aten::tan", 0, kComplexHalf},
    {"aten::tanh", 0, kComplexHalf},
    {"aten::tanh_backward", 0, kComplexHalf},
    {"aten::trace", 0, kBool | kComplexHalf},
    {"aten::unfold_backward", 0, 0, kHalf},
    {"aten::uniform_", kTakesAnySize},
    {"aten::zero_", kTakesAnySize},
    {"openreg::convolution_backward_overrideable",
     0,
     0,
     kHalf | kBFloat16Unaided},
    {"quantized::linear_prepack_fp16_legacy", kReturnsCustomClass},
    {"quantized::linear_prepack_legacy", kReturnsCustomClass},
});
// [docs: end]

// Prefixes of names.
constexpr auto kFamilies = std::to_array<Row>({
    {"aten::_cholesky_", kRefusesValues},
    {"aten::_fake_quantize_", kRefusesValues},
    {"aten::_histogramdd_", kRefusesValues},
    {"aten::_linalg_", kRefusesValues},
    {"aten::binary_cross_entropy", kRefusesValues},
    {"aten::cholesky", kRefusesValues},
    {"aten::fake_quantize_", kRefusesValues},
    {"aten::fbgemm_", kStaysOnHost},
    {"aten::hist", kRefusesValues},
    {"aten::linalg_", kRefusesValues},
    {"aten::lu_", kRefusesValues},
    {"aten::quantize_", kRefusesValues},
});

// Operators with several tensors that have a CUDA kernel in
// native_functions.yaml without `device_check: NoCheck`. Their CUDA kernel
// first compares the devices of all tensors. cmake/device_checks.py generates
// the list at build time.
constexpr auto kChecksDevices = std::to_array<std::string_view>({
#include <device_checks.inc>
});
// The iterator of clamp accepts no CPU scalar tensor, and embedding calls
// index_select on CUDA.
constexpr auto kChecksDevicesToo =
    std::to_array<std::string_view>({"clamp", "embedding"});

static_assert(std::ranges::is_sorted(kRows, {}, &Row::name));
static_assert(std::ranges::is_sorted(kChecksDevices));

constexpr std::string_view kNamespace = "aten::";

std::string_view without_underscore(std::string_view name) {
  if (name.ends_with('_') && !name.ends_with("__")) {
    name.remove_suffix(1);
  }
  return name;
}

bool cpu_computes_in_bfloat16() {
  static const bool value = [] {
    const auto all = at::cpu::get_cpu_capabilities();
    return std::ranges::any_of(
        std::to_array({"avx512_bf16", "amx_bf16", "bf16", "sve_bf16"}),
        [&](const char* name) {
          const auto found = all.find(name);
          return found != all.end() && found->second.isBool() &&
              found->second.toBool();
        });
  }();
  return value;
}

uint64_t slow_dtypes_of(const Row& row) {
  if ((row.slow_dtypes & kBFloat16Unaided) == 0) {
    return row.slow_dtypes;
  }
  const uint64_t others = row.slow_dtypes & ~kBFloat16Unaided;
  return cpu_computes_in_bfloat16() ? others : others | kBFloat16;
}

const Row* find(std::string_view name) {
  const auto* found = std::ranges::lower_bound(kRows, name, {}, &Row::name);
  return found != kRows.end() && found->name == name ? found : nullptr;
}

} // namespace

OperatorFacts facts_of(const std::string& name, const std::string& overload) {
  OperatorFacts all;
  if (const Row* row = find(name)) {
    all.facts |= row->facts;
  }
  if (const Row* row =
          overload.empty() ? nullptr : find(name + "." + overload)) {
    all.facts |= row->facts;
  }
  for (const Row& family : kFamilies) {
    all.facts |= name.starts_with(family.name) ? family.facts : 0;
  }
  if (const Row* row = find(without_underscore(name))) {
    all.missing_dtypes = row->missing_dtypes;
    all.slow_dtypes = slow_dtypes_of(*row);
  }
  return all;
}

std::vector<std::string> slow_operators() {
  std::vector<std::string> names;
  for (const Row& row : kRows) {
    if (row.slow_dtypes != 0) {
      names.emplace_back(row.name);
    }
  }
  return names;
}

bool takes_host(const std::string& name, const std::string& argument) {
  const Row* row = find(name + "." + argument);
  return row != nullptr && (row->facts & kTakesHost) != 0;
}

bool checks_devices(const std::string& name) {
  if (!name.starts_with(kNamespace)) {
    return false;
  }
  const auto base =
      without_underscore(std::string_view(name).substr(kNamespace.size()));
  return std::ranges::binary_search(kChecksDevices, base) ||
      std::ranges::find(kChecksDevicesToo, base) != kChecksDevicesToo.end();
}

} // namespace openreg::aten
