// SPDX-License-Identifier: BSD-3-Clause
// An operator without a derivative, whose backward raises an error.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/library.h>

namespace {

at::Tensor custom_round(const at::Tensor& x) {
  return at::empty_like(x).copy_(x).round_();
}

} // namespace

TORCH_LIBRARY_FRAGMENT(demo, m) {
  m.def("custom_round(Tensor x) -> Tensor");
}

TORCH_LIBRARY_IMPL(demo, PrivateUse1, m) {
  m.impl("custom_round", custom_round);
}

// [docs: registration]
TORCH_LIBRARY_IMPL(demo, AutogradPrivateUse1, m) {
  m.impl("custom_round", torch::autograd::autogradNotImplementedFallback());
}
// [docs: end]
