// SPDX-License-Identifier: BSD-3-Clause
// An operator that writes to its argument and notifies autograd.
#include "launch.h"

#include <ATen/Dispatch.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/library.h>

namespace {

at::Tensor& negate_(at::Tensor& x) {
  TORCH_CHECK(x.is_contiguous(), "negate_: expected a contiguous tensor");
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "negate_", [&] {
    auto* data = registering::kernel_pointer<scalar_t>(x);
    registering::launch(x, [=, count = x.numel()] {
      for (int64_t i = 0; i < count; ++i) {
        data[i] = -data[i];
      }
    });
  });
  return x;
}

} // namespace

// [docs: registration]
TORCH_LIBRARY_FRAGMENT(demo, m) {
  m.def("negate_(Tensor(a!) x) -> Tensor(a!)");
  m.def("negate_unmarked_(Tensor(a!) x) -> Tensor(a!)");
}

TORCH_LIBRARY_IMPL(demo, PrivateUse1, m) {
  m.impl("negate_", negate_);
  m.impl("negate_unmarked_", negate_);
}

TORCH_LIBRARY_IMPL(demo, ADInplaceOrView, m) {
  m.impl(
      "negate_",
      torch::autograd::autogradNotImplementedInplaceOrViewFallback());
}
// [docs: end]
