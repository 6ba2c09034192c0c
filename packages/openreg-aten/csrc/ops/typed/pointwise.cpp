// SPDX-License-Identifier: BSD-3-Clause
// Pointwise operators that are not structured, or need additional code.
#include "ops/typed/add_operators.h"
#include "ops/typed/families.h"

namespace openreg::aten {

void add_typed_pointwise(torch::Library& library) {
  namespace ops = at::_ops;
  // With one tensor.
  add_typed_operators<
      ops::isnan,
      ops::isposinf,
      ops::isneginf,
      ops::signbit,
      ops::angle,
      ops::logical_not,
      ops::logical_not_out,
      ops::conj_physical_out,
      ops::neg_out,
      ops::clamp,
      ops::clamp_,
      ops::nan_to_num,
      ops::logit,
      ops::logit_,
      ops::frexp_Tensor_out>(library);
  // With two or more tensors.
  add_typed_operators<
      ops::add_Scalar,
      ops::sub_Scalar,
      ops::mul_Scalar,
      ops::div_Scalar,
      ops::div_Tensor_mode,
      ops::rsub_Scalar,
      ops::rsub_Tensor,
      ops::mul_out,
      ops::pow_Scalar,
      ops::pow__Scalar,
      ops::floor_divide,
      ops::clamp_Tensor,
      ops::clamp__Tensor,
      ops::complex_out,
      ops::polar_out>(library);
  // Logic and selection.
  add_typed_operators<
      ops::logical_and,
      ops::logical_or,
      ops::logical_xor_out,
      ops::isin_Tensor_Tensor,
      ops::where_self,
      ops::where_self_out>(library);
  // Activation functions.
  add_typed_operators<
      ops::gelu,
      ops::gelu_backward,
      ops::hardtanh,
      ops::hardtanh_,
      ops::hardtanh_backward,
      ops::hardswish,
      ops::hardswish_,
      ops::hardswish_backward,
      ops::mish_backward,
      ops::log_sigmoid_forward,
      ops::log_sigmoid_backward,
      ops::glu,
      ops::glu_backward,
      ops::_prelu_kernel,
      ops::_prelu_kernel_backward,
      ops::rrelu_with_noise,
      ops::rrelu_with_noise_>(library);
}

} // namespace openreg::aten
