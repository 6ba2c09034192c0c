// SPDX-License-Identifier: BSD-3-Clause
// Activation functions.
#include "ops/structured/add_operators.h"
#include "ops/structured/families.h"

namespace openreg::aten {
namespace {

/// The parts of PyTorch's relu, without a second dispatcher call.
template <typename Operator, typename Self, typename Result>
Result relu(Self self) {
  TORCH_CHECK(
      self.scalar_type() != at::kBool, "Boolean inputs not supported for relu");
  return StructuredKernel<Operator, at::native::structured_clamp_min_out>::run(
      self, 0);
}

} // namespace

void add_structured_activations(torch::Library& library) {
  namespace ops = at::_ops;
  // Forward.
  library.impl(
      "relu", TORCH_FN((relu<ops::clamp_min, const at::Tensor&, at::Tensor>)));
  library.impl(
      "relu_", TORCH_FN((relu<ops::clamp_min_, at::Tensor&, at::Tensor&>)));
  OPENREG_ADD(silu_out, ops::silu, ops::silu_);
  OPENREG_ADD(mish_out, ops::mish, ops::mish_);
  OPENREG_ADD(elu_out, ops::elu, ops::elu_);
  OPENREG_ADD(leaky_relu_out, ops::leaky_relu, ops::leaky_relu_);
  OPENREG_ADD(hardsigmoid_out, ops::hardsigmoid, ops::hardsigmoid_);
  OPENREG_ADD(threshold_out, ops::threshold, ops::threshold_);
  OPENREG_ADD(softplus_out, ops::softplus);
  OPENREG_ADD(softshrink_out, ops::softshrink);
  OPENREG_ADD(hardshrink_out, ops::hardshrink);
  // Backward.
  OPENREG_ADD(sigmoid_backward_out, ops::sigmoid_backward);
  OPENREG_ADD(tanh_backward_out, ops::tanh_backward);
  OPENREG_ADD(threshold_backward_out, ops::threshold_backward);
  OPENREG_ADD(silu_backward_out, ops::silu_backward);
  OPENREG_ADD(elu_backward_out, ops::elu_backward);
  OPENREG_ADD(leaky_relu_backward_out, ops::leaky_relu_backward);
  OPENREG_ADD(hardsigmoid_backward_out, ops::hardsigmoid_backward);
  OPENREG_ADD(softplus_backward_out, ops::softplus_backward);
  OPENREG_ADD(softshrink_backward_out, ops::softshrink_backward);
  OPENREG_ADD(hardshrink_backward_out, ops::hardshrink_backward);
  OPENREG_ADD(logit_backward_out, ops::logit_backward);
}

} // namespace openreg::aten
