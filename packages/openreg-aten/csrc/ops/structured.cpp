// SPDX-License-Identifier: BSD-3-Clause
// The pointwise operators that programs call most, with the CPU's kernels
// straight under PyTorch's iterator.
#include "kernel/structured.h"

#include "mechanism.h"

#include <ATen/ops/add_native.h>
#include <ATen/ops/add_ops.h>
#include <ATen/ops/addcdiv_native.h>
#include <ATen/ops/addcdiv_ops.h>
#include <ATen/ops/addcmul_native.h>
#include <ATen/ops/addcmul_ops.h>
#include <ATen/ops/ceil_native.h>
#include <ATen/ops/ceil_ops.h>
#include <ATen/ops/clamp_min_native.h>
#include <ATen/ops/clamp_min_ops.h>
#include <ATen/ops/cos_native.h>
#include <ATen/ops/cos_ops.h>
#include <ATen/ops/div_native.h>
#include <ATen/ops/div_ops.h>
#include <ATen/ops/eq_native.h>
#include <ATen/ops/eq_ops.h>
#include <ATen/ops/erf_native.h>
#include <ATen/ops/erf_ops.h>
#include <ATen/ops/exp_native.h>
#include <ATen/ops/exp_ops.h>
#include <ATen/ops/floor_native.h>
#include <ATen/ops/floor_ops.h>
#include <ATen/ops/ge_native.h>
#include <ATen/ops/ge_ops.h>
#include <ATen/ops/gt_native.h>
#include <ATen/ops/gt_ops.h>
#include <ATen/ops/le_native.h>
#include <ATen/ops/le_ops.h>
#include <ATen/ops/lerp_native.h>
#include <ATen/ops/lerp_ops.h>
#include <ATen/ops/log_native.h>
#include <ATen/ops/log_ops.h>
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
#include <ATen/ops/neg_native.h>
#include <ATen/ops/neg_ops.h>
#include <ATen/ops/pow_native.h>
#include <ATen/ops/pow_ops.h>
#include <ATen/ops/reciprocal_native.h>
#include <ATen/ops/reciprocal_ops.h>
#include <ATen/ops/rsqrt_native.h>
#include <ATen/ops/rsqrt_ops.h>
#include <ATen/ops/sigmoid_backward_native.h>
#include <ATen/ops/sigmoid_backward_ops.h>
#include <ATen/ops/sigmoid_native.h>
#include <ATen/ops/sigmoid_ops.h>
#include <ATen/ops/silu_native.h>
#include <ATen/ops/silu_ops.h>
#include <ATen/ops/sin_native.h>
#include <ATen/ops/sin_ops.h>
#include <ATen/ops/sqrt_native.h>
#include <ATen/ops/sqrt_ops.h>
#include <ATen/ops/sub_native.h>
#include <ATen/ops/sub_ops.h>
#include <ATen/ops/tanh_backward_native.h>
#include <ATen/ops/tanh_backward_ops.h>
#include <ATen/ops/tanh_native.h>
#include <ATen/ops/tanh_ops.h>
#include <ATen/ops/threshold_backward_native.h>
#include <ATen/ops/threshold_backward_ops.h>
#include <ATen/ops/trunc_native.h>
#include <ATen/ops/trunc_ops.h>
#include <torch/library.h>

namespace openreg::aten {
namespace {

template <typename Structured, typename... Operators>
void add_operators(torch::Library& library) {
  const auto add = [&](const c10::OperatorHandle& op, auto kernel) {
    library.impl(toString(op.operator_name()).c_str(), kernel);
  };
  (add(TypedKernel<Operators>::handle(),
       TORCH_FN((StructuredKernel<Operators, Structured>::run))),
   ...);
}

/// What PyTorch's relu is made of, without a second call of the dispatcher.
template <typename Operator, typename Self, typename Result>
Result relu(Self self) {
  TORCH_CHECK(
      self.scalar_type() != at::kBool, "Boolean inputs not supported for relu");
  return StructuredKernel<Operator, at::native::structured_clamp_min_out>::run(
      self, 0);
}

} // namespace

OPENREG_MECHANISM(
    structured,
    "TORCH_LIBRARY_IMPL: structured kernels",
    "pointwise operators on small tensors cost more") {
  namespace native = at::native;
  namespace ops = at::_ops;
  static auto library = MAKE_TORCH_LIBRARY_IMPL(aten, PrivateUse1);
  add_operators<native::structured_exp_out, ops::exp, ops::exp_>(library);
  add_operators<native::structured_log_out, ops::log, ops::log_>(library);
  add_operators<native::structured_sqrt_out, ops::sqrt, ops::sqrt_>(library);
  add_operators<native::structured_rsqrt_out, ops::rsqrt, ops::rsqrt_>(library);
  add_operators<
      native::structured_reciprocal_out,
      ops::reciprocal,
      ops::reciprocal_>(library);
  add_operators<native::structured_sin_out, ops::sin, ops::sin_>(library);
  add_operators<native::structured_cos_out, ops::cos, ops::cos_>(library);
  add_operators<native::structured_tanh_out, ops::tanh, ops::tanh_>(library);
  add_operators<native::structured_sigmoid_out, ops::sigmoid, ops::sigmoid_>(
      library);
  add_operators<native::structured_erf_out, ops::erf, ops::erf_>(library);
  add_operators<native::structured_neg_out, ops::neg, ops::neg_>(library);
  add_operators<native::structured_floor_out, ops::floor, ops::floor_>(library);
  add_operators<native::structured_ceil_out, ops::ceil, ops::ceil_>(library);
  add_operators<native::structured_trunc_out, ops::trunc, ops::trunc_>(library);
  add_operators<native::structured_silu_out, ops::silu, ops::silu_>(library);
  add_operators<
      native::structured_ufunc_add_CPU,
      ops::add_Tensor,
      ops::add__Tensor>(library);
  add_operators<native::structured_sub_out, ops::sub_Tensor, ops::sub__Tensor>(
      library);
  add_operators<native::structured_mul_out, ops::mul_Tensor, ops::mul__Tensor>(
      library);
  add_operators<native::structured_div_out, ops::div_Tensor, ops::div__Tensor>(
      library);
  add_operators<native::structured_maximum_out, ops::maximum>(library);
  add_operators<native::structured_minimum_out, ops::minimum>(library);
  add_operators<native::structured_eq_Scalar_out, ops::eq_Scalar>(library);
  add_operators<native::structured_eq_Tensor_out, ops::eq_Tensor>(library);
  add_operators<native::structured_ne_Scalar_out, ops::ne_Scalar>(library);
  add_operators<native::structured_ne_Tensor_out, ops::ne_Tensor>(library);
  add_operators<native::structured_lt_Scalar_out, ops::lt_Scalar>(library);
  add_operators<native::structured_lt_Tensor_out, ops::lt_Tensor>(library);
  add_operators<native::structured_le_Scalar_out, ops::le_Scalar>(library);
  add_operators<native::structured_le_Tensor_out, ops::le_Tensor>(library);
  add_operators<native::structured_gt_Scalar_out, ops::gt_Scalar>(library);
  add_operators<native::structured_gt_Tensor_out, ops::gt_Tensor>(library);
  add_operators<native::structured_ge_Scalar_out, ops::ge_Scalar>(library);
  add_operators<native::structured_ge_Tensor_out, ops::ge_Tensor>(library);
  add_operators<
      native::structured_clamp_min_out,
      ops::clamp_min,
      ops::clamp_min_>(library);
  library.impl(
      "relu", TORCH_FN((relu<ops::clamp_min, const at::Tensor&, at::Tensor>)));
  library.impl(
      "relu_", TORCH_FN((relu<ops::clamp_min_, at::Tensor&, at::Tensor&>)));
  add_operators<native::structured_addcmul_out, ops::addcmul, ops::addcmul_>(
      library);
  add_operators<native::structured_addcdiv_out, ops::addcdiv, ops::addcdiv_>(
      library);
  add_operators<
      native::structured_lerp_Scalar,
      ops::lerp_Scalar,
      ops::lerp__Scalar>(library);
  add_operators<
      native::structured_pow_Tensor_Scalar_out,
      ops::pow_Tensor_Scalar>(library);
  add_operators<
      native::structured_threshold_backward_out,
      ops::threshold_backward>(library);
  add_operators<native::structured_sigmoid_backward_out, ops::sigmoid_backward>(
      library);
  add_operators<native::structured_tanh_backward_out, ops::tanh_backward>(
      library);
}

} // namespace openreg::aten
