// SPDX-License-Identifier: BSD-3-Clause
// Pointwise operators of one tensor.
#include "ops/structured/add_operators.h"
#include "ops/structured/families.h"

#include <ATen/ops/acos_native.h>
#include <ATen/ops/acos_ops.h>
#include <ATen/ops/acosh_native.h>
#include <ATen/ops/acosh_ops.h>
#include <ATen/ops/asin_native.h>
#include <ATen/ops/asin_ops.h>
#include <ATen/ops/asinh_native.h>
#include <ATen/ops/asinh_ops.h>
#include <ATen/ops/atan_native.h>
#include <ATen/ops/atan_ops.h>
#include <ATen/ops/atanh_native.h>
#include <ATen/ops/atanh_ops.h>
#include <ATen/ops/bitwise_not_native.h>
#include <ATen/ops/bitwise_not_ops.h>
#include <ATen/ops/ceil_native.h>
#include <ATen/ops/ceil_ops.h>
#include <ATen/ops/cos_native.h>
#include <ATen/ops/cos_ops.h>
#include <ATen/ops/cosh_native.h>
#include <ATen/ops/cosh_ops.h>
#include <ATen/ops/digamma_native.h>
#include <ATen/ops/digamma_ops.h>
#include <ATen/ops/erf_native.h>
#include <ATen/ops/erf_ops.h>
#include <ATen/ops/erfc_native.h>
#include <ATen/ops/erfc_ops.h>
#include <ATen/ops/erfinv_native.h>
#include <ATen/ops/erfinv_ops.h>
#include <ATen/ops/exp2_native.h>
#include <ATen/ops/exp2_ops.h>
#include <ATen/ops/exp_native.h>
#include <ATen/ops/exp_ops.h>
#include <ATen/ops/expm1_native.h>
#include <ATen/ops/expm1_ops.h>
#include <ATen/ops/floor_native.h>
#include <ATen/ops/floor_ops.h>
#include <ATen/ops/frac_native.h>
#include <ATen/ops/frac_ops.h>
#include <ATen/ops/i0_native.h>
#include <ATen/ops/i0_ops.h>
#include <ATen/ops/lgamma_native.h>
#include <ATen/ops/lgamma_ops.h>
#include <ATen/ops/log10_native.h>
#include <ATen/ops/log10_ops.h>
#include <ATen/ops/log1p_native.h>
#include <ATen/ops/log1p_ops.h>
#include <ATen/ops/log2_native.h>
#include <ATen/ops/log2_ops.h>
#include <ATen/ops/log_native.h>
#include <ATen/ops/log_ops.h>
#include <ATen/ops/neg_native.h>
#include <ATen/ops/neg_ops.h>
#include <ATen/ops/polygamma_native.h>
#include <ATen/ops/polygamma_ops.h>
#include <ATen/ops/reciprocal_native.h>
#include <ATen/ops/reciprocal_ops.h>
#include <ATen/ops/round_native.h>
#include <ATen/ops/round_ops.h>
#include <ATen/ops/rsqrt_native.h>
#include <ATen/ops/rsqrt_ops.h>
#include <ATen/ops/sgn_native.h>
#include <ATen/ops/sgn_ops.h>
#include <ATen/ops/sigmoid_native.h>
#include <ATen/ops/sigmoid_ops.h>
#include <ATen/ops/sign_native.h>
#include <ATen/ops/sign_ops.h>
#include <ATen/ops/sin_native.h>
#include <ATen/ops/sin_ops.h>
#include <ATen/ops/sinc_native.h>
#include <ATen/ops/sinc_ops.h>
#include <ATen/ops/sinh_native.h>
#include <ATen/ops/sinh_ops.h>
#include <ATen/ops/sqrt_native.h>
#include <ATen/ops/sqrt_ops.h>
#include <ATen/ops/tan_native.h>
#include <ATen/ops/tan_ops.h>
#include <ATen/ops/tanh_native.h>
#include <ATen/ops/tanh_ops.h>
#include <ATen/ops/trunc_native.h>
#include <ATen/ops/trunc_ops.h>

namespace openreg::aten {

void add_structured_unary(torch::Library& library) {
  namespace native = at::native;
  namespace ops = at::_ops;
  // Exponentials and logarithms.
  add_structured_operators<native::structured_exp_out, ops::exp, ops::exp_>(
      library);
  add_structured_operators<native::structured_exp2_out, ops::exp2, ops::exp2_>(
      library);
  add_structured_operators<
      native::structured_expm1_out,
      ops::expm1,
      ops::expm1_>(library);
  add_structured_operators<native::structured_log_out, ops::log, ops::log_>(
      library);
  add_structured_operators<native::structured_log2_out, ops::log2, ops::log2_>(
      library);
  add_structured_operators<
      native::structured_log10_out,
      ops::log10,
      ops::log10_>(library);
  add_structured_operators<
      native::structured_log1p_out,
      ops::log1p,
      ops::log1p_>(library);
  // Roots and quotients.
  add_structured_operators<native::structured_sqrt_out, ops::sqrt, ops::sqrt_>(
      library);
  add_structured_operators<
      native::structured_rsqrt_out,
      ops::rsqrt,
      ops::rsqrt_>(library);
  add_structured_operators<
      native::structured_reciprocal_out,
      ops::reciprocal,
      ops::reciprocal_>(library);
  // Trigonometric and hyperbolic.
  add_structured_operators<native::structured_sin_out, ops::sin, ops::sin_>(
      library);
  add_structured_operators<native::structured_cos_out, ops::cos, ops::cos_>(
      library);
  add_structured_operators<native::structured_tan_out, ops::tan, ops::tan_>(
      library);
  add_structured_operators<native::structured_asin_out, ops::asin, ops::asin_>(
      library);
  add_structured_operators<native::structured_acos_out, ops::acos, ops::acos_>(
      library);
  add_structured_operators<native::structured_atan_out, ops::atan, ops::atan_>(
      library);
  add_structured_operators<native::structured_sinh_out, ops::sinh, ops::sinh_>(
      library);
  add_structured_operators<native::structured_cosh_out, ops::cosh, ops::cosh_>(
      library);
  add_structured_operators<native::structured_tanh_out, ops::tanh, ops::tanh_>(
      library);
  add_structured_operators<
      native::structured_asinh_out,
      ops::asinh,
      ops::asinh_>(library);
  add_structured_operators<
      native::structured_acosh_out,
      ops::acosh,
      ops::acosh_>(library);
  add_structured_operators<
      native::structured_atanh_out,
      ops::atanh,
      ops::atanh_>(library);
  add_structured_operators<native::structured_sinc_out, ops::sinc, ops::sinc_>(
      library);
  // Rounding.
  add_structured_operators<
      native::structured_floor_out,
      ops::floor,
      ops::floor_>(library);
  add_structured_operators<native::structured_ceil_out, ops::ceil, ops::ceil_>(
      library);
  add_structured_operators<
      native::structured_trunc_out,
      ops::trunc,
      ops::trunc_>(library);
  add_structured_operators<
      native::structured_round_out,
      ops::round,
      ops::round_>(library);
  add_structured_operators<
      native::structured_round_decimals_out,
      ops::round_decimals,
      ops::round__decimals>(library);
  add_structured_operators<native::structured_frac_out, ops::frac, ops::frac_>(
      library);
  // Signs and bits.
  add_structured_operators<native::structured_neg_out, ops::neg, ops::neg_>(
      library);
  add_structured_operators<native::structured_sign_out, ops::sign, ops::sign_>(
      library);
  add_structured_operators<native::structured_sgn_out, ops::sgn, ops::sgn_>(
      library);
  add_structured_operators<
      native::structured_bitwise_not_out,
      ops::bitwise_not,
      ops::bitwise_not_>(library);
  // Special functions.
  add_structured_operators<
      native::structured_sigmoid_out,
      ops::sigmoid,
      ops::sigmoid_>(library);
  add_structured_operators<native::structured_erf_out, ops::erf, ops::erf_>(
      library);
  add_structured_operators<native::structured_erfc_out, ops::erfc, ops::erfc_>(
      library);
  add_structured_operators<
      native::structured_erfinv_out,
      ops::erfinv,
      ops::erfinv_>(library);
  add_structured_operators<
      native::structured_lgamma_out,
      ops::lgamma,
      ops::lgamma_>(library);
  add_structured_operators<
      native::structured_digamma_out,
      ops::digamma,
      ops::digamma_>(library);
  add_structured_operators<native::structured_polygamma_out, ops::polygamma>(
      library);
  add_structured_operators<native::structured_i0_out, ops::i0, ops::i0_>(
      library);
}

} // namespace openreg::aten
