// SPDX-License-Identifier: BSD-3-Clause
// A kernel that replaces PyTorch's composite kernel. The composite kernel gets
// its derivative from its parts, so the new kernel needs an explicit one.
#include "launch.h"

#include <ATen/Dispatch.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/square_ops.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

namespace {

// [docs: kernel]
at::Tensor square(const at::Tensor& x) {
  const at::Tensor input = x.contiguous();
  at::Tensor output = at::empty_like(input);
  AT_DISPATCH_FLOATING_TYPES(input.scalar_type(), "square", [&] {
    const auto* from = registering::kernel_pointer<const scalar_t>(input);
    auto* to = registering::kernel_pointer<scalar_t>(output);
    registering::launch(output, [=, count = input.numel()] {
      for (int64_t i = 0; i < count; ++i) {
        to[i] = from[i] * from[i];
      }
    });
  });
  return output;
}
// [docs: end]

// [docs: autograd]
class Square : public torch::autograd::Function<Square> {
 public:
  static at::Tensor forward(
      torch::autograd::AutogradContext* context,
      const at::Tensor& x) {
    context->save_for_backward({x});
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    return at::_ops::square::call(x);
  }
  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext* context,
      const torch::autograd::variable_list& grads) {
    return {grads[0] * context->get_saved_variables()[0] * 2};
  }
};

at::Tensor square_autograd(const at::Tensor& x) {
  return Square::apply(x);
}
// [docs: end]

} // namespace

// [docs: registration]
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("square", square);
}

TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) {
  m.impl("square", square_autograd);
}
// [docs: end]
