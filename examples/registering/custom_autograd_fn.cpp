// SPDX-License-Identifier: BSD-3-Clause
// New operators in an existing namespace. Their only kernel is a
// torch::autograd::Function.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// [docs: function]
/// Returns a view of its argument; backward() returns half of the gradient.
class Aliasing : public torch::autograd::Function<Aliasing> {
 public:
  static at::Tensor forward(AutogradContext*, const at::Tensor& x) {
    return x.view_symint(x.sym_sizes());
  }
  static variable_list backward(AutogradContext*, const variable_list& grads) {
    return {grads[0] * 0.5};
  }
};

at::Tensor custom_autograd_fn_aliasing(const at::Tensor& x) {
  return Aliasing::apply(x);
}
// [docs: end]

/// Returns the argument itself instead of a view.
class ReturnsSelf : public torch::autograd::Function<ReturnsSelf> {
 public:
  static at::Tensor forward(AutogradContext*, at::Tensor x) {
    return x;
  }
  static variable_list backward(AutogradContext*, const variable_list& grads) {
    return {grads[0] * 0.5};
  }
};

at::Tensor custom_autograd_fn_returns_self(at::Tensor x) {
  return ReturnsSelf::apply(std::move(x));
}

} // namespace

// [docs: registration]
TORCH_LIBRARY_FRAGMENT(openreg, m) {
  m.def("custom_autograd_fn_aliasing(Tensor(a) x) -> Tensor(a)");
  m.def("custom_autograd_fn_returns_self(Tensor(a) x) -> Tensor(a)");
}

TORCH_LIBRARY_IMPL(openreg, AutogradPrivateUse1, m) {
  m.impl("custom_autograd_fn_aliasing", custom_autograd_fn_aliasing);
  m.impl("custom_autograd_fn_returns_self", custom_autograd_fn_returns_self);
}
// [docs: end]
