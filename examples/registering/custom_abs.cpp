// SPDX-License-Identifier: BSD-3-Clause
// A new operator in a new namespace: schema, kernel, Meta and autograd.
#include "launch.h"

#include <ATen/Dispatch.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/sgn.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <cmath>

namespace {

// [docs: kernel]
at::Tensor custom_abs(const at::Tensor& x) {
  const at::Tensor input = x.contiguous();
  at::Tensor output = at::empty_like(input);
  AT_DISPATCH_FLOATING_TYPES(input.scalar_type(), "custom_abs", [&] {
    const auto* from = registering::kernel_pointer<const scalar_t>(input);
    auto* to = registering::kernel_pointer<scalar_t>(output);
    registering::launch(output, [=, count = input.numel()] {
      for (int64_t i = 0; i < count; ++i) {
        to[i] = std::abs(from[i]);
      }
    });
  });
  return output;
}
// [docs: end]

// [docs: meta]
at::Tensor custom_abs_meta(const at::Tensor& x) {
  return at::empty_symint(x.sym_sizes(), x.options());
}
// [docs: end]

// [docs: autograd]
class CustomAbs : public torch::autograd::Function<CustomAbs> {
 public:
  static at::Tensor forward(
      torch::autograd::AutogradContext* context,
      const at::Tensor& x) {
    static const auto op = c10::Dispatcher::singleton()
                               .findSchemaOrThrow("demo::custom_abs", "")
                               .typed<at::Tensor(const at::Tensor&)>();
    context->save_for_backward({x});
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    return op.call(x); // now the device kernel
  }

  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext* context,
      const torch::autograd::variable_list& grads) {
    return {grads[0] * context->get_saved_variables()[0].sgn()};
  }
};

at::Tensor custom_abs_autograd(const at::Tensor& x) {
  return CustomAbs::apply(x);
}
// [docs: end]

} // namespace

// [docs: registration]
TORCH_LIBRARY(demo, m) {
  m.def("custom_abs(Tensor x) -> Tensor");
}

TORCH_LIBRARY_IMPL(demo, PrivateUse1, m) {
  m.impl("custom_abs", custom_abs);
}

TORCH_LIBRARY_IMPL(demo, Meta, m) {
  m.impl("custom_abs", custom_abs_meta);
}

TORCH_LIBRARY_IMPL(demo, AutogradPrivateUse1, m) {
  m.impl("custom_abs", custom_abs_autograd);
}
// [docs: end]
