// SPDX-License-Identifier: BSD-3-Clause
// Pointwise operators with two or more tensors.
#include "ops/structured/add_operators.h"
#include "ops/structured/families.h"

namespace openreg::aten {

void add_structured_binary(torch::Library& library) {
  namespace ops = at::_ops;
  // Arithmetic.
  OPENREG_ADD(ufunc_add_CPU, ops::add_Tensor, ops::add__Tensor);
  OPENREG_ADD(sub_out, ops::sub_Tensor, ops::sub__Tensor);
  OPENREG_ADD(mul_out, ops::mul_Tensor, ops::mul__Tensor);
  OPENREG_ADD(div_out, ops::div_Tensor, ops::div__Tensor);
  OPENREG_ADD(fmod_out, ops::fmod_Tensor, ops::fmod__Tensor);
  OPENREG_ADD(remainder_out, ops::remainder_Tensor, ops::remainder__Tensor);
  OPENREG_ADD(pow_Tensor_Scalar_out, ops::pow_Tensor_Scalar);
  OPENREG_ADD(pow_Tensor_Tensor_out, ops::pow_Tensor_Tensor);
  OPENREG_ADD(hypot_out, ops::hypot, ops::hypot_);
  OPENREG_ADD(atan2_out, ops::atan2, ops::atan2_);
  OPENREG_ADD(copysign_out, ops::copysign_Tensor, ops::copysign__Tensor);
  OPENREG_ADD(nextafter_out, ops::nextafter, ops::nextafter_);
  OPENREG_ADD(heaviside_out, ops::heaviside, ops::heaviside_);
  OPENREG_ADD(xlogy_out, ops::xlogy_Tensor, ops::xlogy__Tensor);
  OPENREG_ADD(logaddexp_out, ops::logaddexp);
  OPENREG_ADD(logaddexp2_out, ops::logaddexp2);
  OPENREG_ADD(addcmul_out, ops::addcmul, ops::addcmul_);
  OPENREG_ADD(addcdiv_out, ops::addcdiv, ops::addcdiv_);
  OPENREG_ADD(lerp_Scalar, ops::lerp_Scalar, ops::lerp__Scalar);
  OPENREG_ADD(lerp_Tensor, ops::lerp_Tensor, ops::lerp__Tensor);
  // Comparisons and limits.
  OPENREG_ADD(eq_Scalar_out, ops::eq_Scalar);
  OPENREG_ADD(eq_Tensor_out, ops::eq_Tensor);
  OPENREG_ADD(ne_Scalar_out, ops::ne_Scalar);
  OPENREG_ADD(ne_Tensor_out, ops::ne_Tensor);
  OPENREG_ADD(lt_Scalar_out, ops::lt_Scalar);
  OPENREG_ADD(lt_Tensor_out, ops::lt_Tensor);
  OPENREG_ADD(le_Scalar_out, ops::le_Scalar);
  OPENREG_ADD(le_Tensor_out, ops::le_Tensor);
  OPENREG_ADD(gt_Scalar_out, ops::gt_Scalar);
  OPENREG_ADD(gt_Tensor_out, ops::gt_Tensor);
  OPENREG_ADD(ge_Scalar_out, ops::ge_Scalar);
  OPENREG_ADD(ge_Tensor_out, ops::ge_Tensor);
  OPENREG_ADD(maximum_out, ops::maximum);
  OPENREG_ADD(minimum_out, ops::minimum);
  OPENREG_ADD(fmax_out, ops::fmax);
  OPENREG_ADD(fmin_out, ops::fmin);
  OPENREG_ADD(clamp_min_out, ops::clamp_min, ops::clamp_min_);
  OPENREG_ADD(
      clamp_min_Tensor_out, ops::clamp_min_Tensor, ops::clamp_min__Tensor);
  OPENREG_ADD(clamp_max_out, ops::clamp_max, ops::clamp_max_);
  OPENREG_ADD(
      clamp_max_Tensor_out, ops::clamp_max_Tensor, ops::clamp_max__Tensor);
  // Integers and bits.
  OPENREG_ADD(
      bitwise_and_out, ops::bitwise_and_Tensor, ops::bitwise_and__Tensor);
  OPENREG_ADD(bitwise_or_out, ops::bitwise_or_Tensor, ops::bitwise_or__Tensor);
  OPENREG_ADD(
      bitwise_xor_out, ops::bitwise_xor_Tensor, ops::bitwise_xor__Tensor);
  OPENREG_ADD(
      bitwise_left_shift_out,
      ops::bitwise_left_shift_Tensor,
      ops::bitwise_left_shift__Tensor);
  OPENREG_ADD(
      bitwise_right_shift_out,
      ops::bitwise_right_shift_Tensor,
      ops::bitwise_right_shift__Tensor);
  OPENREG_ADD(gcd_out, ops::gcd, ops::gcd_);
  OPENREG_ADD(lcm_out, ops::lcm, ops::lcm_);
}

} // namespace openreg::aten
