// SPDX-License-Identifier: BSD-3-Clause
// Pointwise operators with one tensor.
#include "ops/structured/add_operators.h"
#include "ops/structured/families.h"

namespace openreg::aten {

void add_structured_unary(torch::Library& library) {
  namespace ops = at::_ops;
  // Exponentials and logarithms.
  OPENREG_ADD(exp_out, ops::exp, ops::exp_);
  OPENREG_ADD(exp2_out, ops::exp2, ops::exp2_);
  OPENREG_ADD(expm1_out, ops::expm1, ops::expm1_);
  OPENREG_ADD(log_out, ops::log, ops::log_);
  OPENREG_ADD(log2_out, ops::log2, ops::log2_);
  OPENREG_ADD(log10_out, ops::log10, ops::log10_);
  OPENREG_ADD(log1p_out, ops::log1p, ops::log1p_);
  // Roots and quotients.
  OPENREG_ADD(sqrt_out, ops::sqrt, ops::sqrt_);
  OPENREG_ADD(rsqrt_out, ops::rsqrt, ops::rsqrt_);
  OPENREG_ADD(reciprocal_out, ops::reciprocal, ops::reciprocal_);
  // Trigonometric and hyperbolic.
  OPENREG_ADD(sin_out, ops::sin, ops::sin_);
  OPENREG_ADD(cos_out, ops::cos, ops::cos_);
  OPENREG_ADD(tan_out, ops::tan, ops::tan_);
  OPENREG_ADD(asin_out, ops::asin, ops::asin_);
  OPENREG_ADD(acos_out, ops::acos, ops::acos_);
  OPENREG_ADD(atan_out, ops::atan, ops::atan_);
  OPENREG_ADD(sinh_out, ops::sinh, ops::sinh_);
  OPENREG_ADD(cosh_out, ops::cosh, ops::cosh_);
  OPENREG_ADD(tanh_out, ops::tanh, ops::tanh_);
  OPENREG_ADD(asinh_out, ops::asinh, ops::asinh_);
  OPENREG_ADD(acosh_out, ops::acosh, ops::acosh_);
  OPENREG_ADD(atanh_out, ops::atanh, ops::atanh_);
  OPENREG_ADD(sinc_out, ops::sinc, ops::sinc_);
  // Rounding.
  OPENREG_ADD(floor_out, ops::floor, ops::floor_);
  OPENREG_ADD(ceil_out, ops::ceil, ops::ceil_);
  OPENREG_ADD(trunc_out, ops::trunc, ops::trunc_);
  OPENREG_ADD(round_out, ops::round, ops::round_);
  OPENREG_ADD(round_decimals_out, ops::round_decimals, ops::round__decimals);
  OPENREG_ADD(frac_out, ops::frac, ops::frac_);
  // Signs and bits.
  OPENREG_ADD(neg_out, ops::neg, ops::neg_);
  OPENREG_ADD(sign_out, ops::sign, ops::sign_);
  OPENREG_ADD(sgn_out, ops::sgn, ops::sgn_);
  OPENREG_ADD(bitwise_not_out, ops::bitwise_not, ops::bitwise_not_);
  // Special functions.
  OPENREG_ADD(sigmoid_out, ops::sigmoid, ops::sigmoid_);
  OPENREG_ADD(erf_out, ops::erf, ops::erf_);
  OPENREG_ADD(erfc_out, ops::erfc, ops::erfc_);
  OPENREG_ADD(erfinv_out, ops::erfinv, ops::erfinv_);
  OPENREG_ADD(lgamma_out, ops::lgamma, ops::lgamma_);
  OPENREG_ADD(digamma_out, ops::digamma, ops::digamma_);
  OPENREG_ADD(polygamma_out, ops::polygamma);
  OPENREG_ADD(i0_out, ops::i0, ops::i0_);
}

} // namespace openreg::aten
