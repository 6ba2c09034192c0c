// SPDX-License-Identifier: BSD-3-Clause
// Activation functions.
#include "ops/structured/add_operators.h"
#include "ops/structured/families.h"

#include <ATen/ops/clamp_min_native.h>
#include <ATen/ops/clamp_min_ops.h>
#include <ATen/ops/elu_backward_native.h>
#include <ATen/ops/elu_backward_ops.h>
#include <ATen/ops/elu_native.h>
#include <ATen/ops/elu_ops.h>
#include <ATen/ops/hardshrink_backward_native.h>
#include <ATen/ops/hardshrink_backward_ops.h>
#include <ATen/ops/hardshrink_native.h>
#include <ATen/ops/hardshrink_ops.h>
#include <ATen/ops/hardsigmoid_backward_native.h>
#include <ATen/ops/hardsigmoid_backward_ops.h>
#include <ATen/ops/hardsigmoid_native.h>
#include <ATen/ops/hardsigmoid_ops.h>
#include <ATen/ops/leaky_relu_backward_native.h>
#include <ATen/ops/leaky_relu_backward_ops.h>
#include <ATen/ops/leaky_relu_native.h>
#include <ATen/ops/leaky_relu_ops.h>
#include <ATen/ops/logit_backward_native.h>
#include <ATen/ops/logit_backward_ops.h>
#include <ATen/ops/mish_native.h>
#include <ATen/ops/mish_ops.h>
#include <ATen/ops/sigmoid_backward_native.h>
#include <ATen/ops/sigmoid_backward_ops.h>
#include <ATen/ops/silu_backward_native.h>
#include <ATen/ops/silu_backward_ops.h>
#include <ATen/ops/silu_native.h>
#include <ATen/ops/silu_ops.h>
#include <ATen/ops/softplus_backward_native.h>
#include <ATen/ops/softplus_backward_ops.h>
#include <ATen/ops/softplus_native.h>
#include <ATen/ops/softplus_ops.h>
#include <ATen/ops/softshrink_backward_native.h>
#include <ATen/ops/softshrink_backward_ops.h>
#include <ATen/ops/softshrink_native.h>
#include <ATen/ops/softshrink_ops.h>
#include <ATen/ops/tanh_backward_native.h>
#include <ATen/ops/tanh_backward_ops.h>
#include <ATen/ops/threshold_backward_native.h>
#include <ATen/ops/threshold_backward_ops.h>
#include <ATen/ops/threshold_native.h>
#include <ATen/ops/threshold_ops.h>

namespace openreg::aten {
namespace {

/// What PyTorch's relu is made of, without a second call of the dispatcher.
template <typename Operator, typename Self, typename Result>
Result relu(Self self) {
  TORCH_CHECK(
      self.scalar_type() != at::kBool, "Boolean inputs not supported for relu");
  return StructuredKernel<Operator, at::native::structured_clamp_min_out>::run(
      self, 0);
}

} // namespace

void add_structured_activations(torch::Library& library) {
  namespace native = at::native;
  namespace ops = at::_ops;
  // Forward.
  library.impl(
      "relu", TORCH_FN((relu<ops::clamp_min, const at::Tensor&, at::Tensor>)));
  library.impl(
      "relu_", TORCH_FN((relu<ops::clamp_min_, at::Tensor&, at::Tensor&>)));
  add_structured_operators<native::structured_silu_out, ops::silu, ops::silu_>(
      library);
  add_structured_operators<native::structured_mish_out, ops::mish, ops::mish_>(
      library);
  add_structured_operators<native::structured_elu_out, ops::elu, ops::elu_>(
      library);
  add_structured_operators<
      native::structured_leaky_relu_out,
      ops::leaky_relu,
      ops::leaky_relu_>(library);
  add_structured_operators<
      native::structured_hardsigmoid_out,
      ops::hardsigmoid,
      ops::hardsigmoid_>(library);
  add_structured_operators<
      native::structured_threshold_out,
      ops::threshold,
      ops::threshold_>(library);
  add_structured_operators<native::structured_softplus_out, ops::softplus>(
      library);
  add_structured_operators<native::structured_softshrink_out, ops::softshrink>(
      library);
  add_structured_operators<native::structured_hardshrink_out, ops::hardshrink>(
      library);
  // Backward.
  add_structured_operators<
      native::structured_sigmoid_backward_out,
      ops::sigmoid_backward>(library);
  add_structured_operators<
      native::structured_tanh_backward_out,
      ops::tanh_backward>(library);
  add_structured_operators<
      native::structured_threshold_backward_out,
      ops::threshold_backward>(library);
  add_structured_operators<
      native::structured_silu_backward_out,
      ops::silu_backward>(library);
  add_structured_operators<
      native::structured_elu_backward_out,
      ops::elu_backward>(library);
  add_structured_operators<
      native::structured_leaky_relu_backward_out,
      ops::leaky_relu_backward>(library);
  add_structured_operators<
      native::structured_hardsigmoid_backward_out,
      ops::hardsigmoid_backward>(library);
  add_structured_operators<
      native::structured_softplus_backward_out,
      ops::softplus_backward>(library);
  add_structured_operators<
      native::structured_softshrink_backward_out,
      ops::softshrink_backward>(library);
  add_structured_operators<
      native::structured_hardshrink_backward_out,
      ops::hardshrink_backward>(library);
  add_structured_operators<
      native::structured_logit_backward_out,
      ops::logit_backward>(library);
}

} // namespace openreg::aten
