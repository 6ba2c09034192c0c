// SPDX-License-Identifier: BSD-3-Clause
// Pointwise operators of two tensors and more.
#include "ops/structured/add_operators.h"
#include "ops/structured/families.h"

#include <ATen/ops/add_native.h>
#include <ATen/ops/add_ops.h>
#include <ATen/ops/addcdiv_native.h>
#include <ATen/ops/addcdiv_ops.h>
#include <ATen/ops/addcmul_native.h>
#include <ATen/ops/addcmul_ops.h>
#include <ATen/ops/atan2_native.h>
#include <ATen/ops/atan2_ops.h>
#include <ATen/ops/bitwise_and_native.h>
#include <ATen/ops/bitwise_and_ops.h>
#include <ATen/ops/bitwise_left_shift_native.h>
#include <ATen/ops/bitwise_left_shift_ops.h>
#include <ATen/ops/bitwise_or_native.h>
#include <ATen/ops/bitwise_or_ops.h>
#include <ATen/ops/bitwise_right_shift_native.h>
#include <ATen/ops/bitwise_right_shift_ops.h>
#include <ATen/ops/bitwise_xor_native.h>
#include <ATen/ops/bitwise_xor_ops.h>
#include <ATen/ops/clamp_max_native.h>
#include <ATen/ops/clamp_max_ops.h>
#include <ATen/ops/clamp_min_native.h>
#include <ATen/ops/clamp_min_ops.h>
#include <ATen/ops/copysign_native.h>
#include <ATen/ops/copysign_ops.h>
#include <ATen/ops/div_native.h>
#include <ATen/ops/div_ops.h>
#include <ATen/ops/eq_native.h>
#include <ATen/ops/eq_ops.h>
#include <ATen/ops/fmax_native.h>
#include <ATen/ops/fmax_ops.h>
#include <ATen/ops/fmin_native.h>
#include <ATen/ops/fmin_ops.h>
#include <ATen/ops/fmod_native.h>
#include <ATen/ops/fmod_ops.h>
#include <ATen/ops/gcd_native.h>
#include <ATen/ops/gcd_ops.h>
#include <ATen/ops/ge_native.h>
#include <ATen/ops/ge_ops.h>
#include <ATen/ops/gt_native.h>
#include <ATen/ops/gt_ops.h>
#include <ATen/ops/heaviside_native.h>
#include <ATen/ops/heaviside_ops.h>
#include <ATen/ops/hypot_native.h>
#include <ATen/ops/hypot_ops.h>
#include <ATen/ops/lcm_native.h>
#include <ATen/ops/lcm_ops.h>
#include <ATen/ops/le_native.h>
#include <ATen/ops/le_ops.h>
#include <ATen/ops/lerp_native.h>
#include <ATen/ops/lerp_ops.h>
#include <ATen/ops/logaddexp2_native.h>
#include <ATen/ops/logaddexp2_ops.h>
#include <ATen/ops/logaddexp_native.h>
#include <ATen/ops/logaddexp_ops.h>
#include <ATen/ops/lt_native.h>
#include <ATen/ops/lt_ops.h>
#include <ATen/ops/maximum_native.h>
#include <ATen/ops/maximum_ops.h>
#include <ATen/ops/minimum_native.h>
#include <ATen/ops/minimum_ops.h>
#include <ATen/ops/mul_native.h>
#include <ATen/ops/mul_ops.h>
#include <ATen/ops/ne_native.h>
#include <ATen/ops/ne_ops.h>
#include <ATen/ops/nextafter_native.h>
#include <ATen/ops/nextafter_ops.h>
#include <ATen/ops/pow_native.h>
#include <ATen/ops/pow_ops.h>
#include <ATen/ops/remainder_native.h>
#include <ATen/ops/remainder_ops.h>
#include <ATen/ops/sub_native.h>
#include <ATen/ops/sub_ops.h>
#include <ATen/ops/xlogy_native.h>
#include <ATen/ops/xlogy_ops.h>

namespace openreg::aten {

void add_structured_binary(torch::Library& library) {
  namespace native = at::native;
  namespace ops = at::_ops;
  // Arithmetic.
  add_structured_operators<
      native::structured_ufunc_add_CPU,
      ops::add_Tensor,
      ops::add__Tensor>(library);
  add_structured_operators<
      native::structured_sub_out,
      ops::sub_Tensor,
      ops::sub__Tensor>(library);
  add_structured_operators<
      native::structured_mul_out,
      ops::mul_Tensor,
      ops::mul__Tensor>(library);
  add_structured_operators<
      native::structured_div_out,
      ops::div_Tensor,
      ops::div__Tensor>(library);
  add_structured_operators<
      native::structured_fmod_out,
      ops::fmod_Tensor,
      ops::fmod__Tensor>(library);
  add_structured_operators<
      native::structured_remainder_out,
      ops::remainder_Tensor,
      ops::remainder__Tensor>(library);
  add_structured_operators<
      native::structured_pow_Tensor_Scalar_out,
      ops::pow_Tensor_Scalar>(library);
  add_structured_operators<
      native::structured_pow_Tensor_Tensor_out,
      ops::pow_Tensor_Tensor>(library);
  add_structured_operators<
      native::structured_hypot_out,
      ops::hypot,
      ops::hypot_>(library);
  add_structured_operators<
      native::structured_atan2_out,
      ops::atan2,
      ops::atan2_>(library);
  add_structured_operators<
      native::structured_copysign_out,
      ops::copysign_Tensor,
      ops::copysign__Tensor>(library);
  add_structured_operators<
      native::structured_nextafter_out,
      ops::nextafter,
      ops::nextafter_>(library);
  add_structured_operators<
      native::structured_heaviside_out,
      ops::heaviside,
      ops::heaviside_>(library);
  add_structured_operators<
      native::structured_xlogy_out,
      ops::xlogy_Tensor,
      ops::xlogy__Tensor>(library);
  add_structured_operators<native::structured_logaddexp_out, ops::logaddexp>(
      library);
  add_structured_operators<native::structured_logaddexp2_out, ops::logaddexp2>(
      library);
  add_structured_operators<
      native::structured_addcmul_out,
      ops::addcmul,
      ops::addcmul_>(library);
  add_structured_operators<
      native::structured_addcdiv_out,
      ops::addcdiv,
      ops::addcdiv_>(library);
  add_structured_operators<
      native::structured_lerp_Scalar,
      ops::lerp_Scalar,
      ops::lerp__Scalar>(library);
  add_structured_operators<
      native::structured_lerp_Tensor,
      ops::lerp_Tensor,
      ops::lerp__Tensor>(library);
  // Comparisons and limits.
  add_structured_operators<native::structured_eq_Scalar_out, ops::eq_Scalar>(
      library);
  add_structured_operators<native::structured_eq_Tensor_out, ops::eq_Tensor>(
      library);
  add_structured_operators<native::structured_ne_Scalar_out, ops::ne_Scalar>(
      library);
  add_structured_operators<native::structured_ne_Tensor_out, ops::ne_Tensor>(
      library);
  add_structured_operators<native::structured_lt_Scalar_out, ops::lt_Scalar>(
      library);
  add_structured_operators<native::structured_lt_Tensor_out, ops::lt_Tensor>(
      library);
  add_structured_operators<native::structured_le_Scalar_out, ops::le_Scalar>(
      library);
  add_structured_operators<native::structured_le_Tensor_out, ops::le_Tensor>(
      library);
  add_structured_operators<native::structured_gt_Scalar_out, ops::gt_Scalar>(
      library);
  add_structured_operators<native::structured_gt_Tensor_out, ops::gt_Tensor>(
      library);
  add_structured_operators<native::structured_ge_Scalar_out, ops::ge_Scalar>(
      library);
  add_structured_operators<native::structured_ge_Tensor_out, ops::ge_Tensor>(
      library);
  add_structured_operators<native::structured_maximum_out, ops::maximum>(
      library);
  add_structured_operators<native::structured_minimum_out, ops::minimum>(
      library);
  add_structured_operators<native::structured_fmax_out, ops::fmax>(library);
  add_structured_operators<native::structured_fmin_out, ops::fmin>(library);
  add_structured_operators<
      native::structured_clamp_min_out,
      ops::clamp_min,
      ops::clamp_min_>(library);
  add_structured_operators<
      native::structured_clamp_min_Tensor_out,
      ops::clamp_min_Tensor,
      ops::clamp_min__Tensor>(library);
  add_structured_operators<
      native::structured_clamp_max_out,
      ops::clamp_max,
      ops::clamp_max_>(library);
  add_structured_operators<
      native::structured_clamp_max_Tensor_out,
      ops::clamp_max_Tensor,
      ops::clamp_max__Tensor>(library);
  // Integers and bits.
  add_structured_operators<
      native::structured_bitwise_and_out,
      ops::bitwise_and_Tensor,
      ops::bitwise_and__Tensor>(library);
  add_structured_operators<
      native::structured_bitwise_or_out,
      ops::bitwise_or_Tensor,
      ops::bitwise_or__Tensor>(library);
  add_structured_operators<
      native::structured_bitwise_xor_out,
      ops::bitwise_xor_Tensor,
      ops::bitwise_xor__Tensor>(library);
  add_structured_operators<
      native::structured_bitwise_left_shift_out,
      ops::bitwise_left_shift_Tensor,
      ops::bitwise_left_shift__Tensor>(library);
  add_structured_operators<
      native::structured_bitwise_right_shift_out,
      ops::bitwise_right_shift_Tensor,
      ops::bitwise_right_shift__Tensor>(library);
  add_structured_operators<native::structured_gcd_out, ops::gcd, ops::gcd_>(
      library);
  add_structured_operators<native::structured_lcm_out, ops::lcm, ops::lcm_>(
      library);
}

} // namespace openreg::aten
