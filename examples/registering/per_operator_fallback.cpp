// SPDX-License-Identifier: BSD-3-Clause
// PyTorch operators, by name: a device kernel for some arguments, and PyTorch's
// copying fallback for other arguments and for whole operators.
#include "launch.h"

#include <ATen/native/CPUFallback.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/trace_ops.h>
#include <torch/library.h>

namespace {

// [docs: boxed]
void cpu_fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  // A copy cannot be a view, so an operator that returns a view must fail.
  at::native::cpu_fallback(op, stack, /*error_on_views=*/true);
}
// [docs: end]

// [docs: typed]
at::Tensor trace(const at::Tensor& x) {
  if (x.scalar_type() != at::kFloat || x.dim() != 2) {
    return at::native::call_fallback_fn<&cpu_fallback, at::_ops::trace>::call(
        x);
  }
  at::Tensor sum = at::empty({}, x.options());
  const auto* from = registering::kernel_pointer<const float>(x);
  auto* to = registering::kernel_pointer<float>(sum);
  const int64_t count = std::min(x.size(0), x.size(1));
  const int64_t step = x.stride(0) + x.stride(1);
  registering::launch(sum, [=] {
    *to = 0;
    for (int64_t i = 0; i < count; ++i) {
      *to += from[i * step];
    }
  });
  return sum;
}
// [docs: end]

} // namespace

// [docs: registration]
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("trace", trace);
  m.impl(
      "bincount", torch::CppFunction::makeFromBoxedFunction<&cpu_fallback>());
}
// [docs: end]
