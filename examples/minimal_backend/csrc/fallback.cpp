// SPDX-License-Identifier: BSD-3-Clause
// The CPU computes what the device has no kernel for.
#include "fallback.h"

#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_native_batch_norm_legit.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <torch/library.h>

// [step 9]
#include "generator.h"
// [step end]

namespace torch_minimal {

// [docs: fallback]
void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  // [step 9]
  replace_generators(op, stack);
  // [step end]
  // A view of a copy would be a tensor of its own: an error is better.
  at::native::cpu_fallback(op, stack, /*error_on_views=*/true);
}
// [docs: end]

namespace {

// [docs: unannotated]
// Its schema does not say that it writes the running statistics, so the fallback
// would not copy them back. That of the operator called here does.
std::tuple<at::Tensor, at::Tensor, at::Tensor> native_batch_norm(
    const at::Tensor& input, const std::optional<at::Tensor>& weight,
    const std::optional<at::Tensor>& bias, const std::optional<at::Tensor>& mean,
    const std::optional<at::Tensor>& var, bool training, double momentum, double eps) {
  if (!mean || !mean->defined()) {
    return at::_native_batch_norm_legit(input, weight, bias, training, momentum, eps);
  }
  at::Tensor running_mean = *mean;
  at::Tensor running_var = *var;
  return at::_native_batch_norm_legit(input, weight, bias, running_mean, running_var, training,
                                      momentum, eps);
}
// [docs: end]

// [docs: overrideable]
// These have a composite kernel, which raises, so the fallback is not asked.
at::Tensor convolution(const at::Tensor& input, const at::Tensor& weight,
                       const std::optional<at::Tensor>& bias, at::IntArrayRef stride,
                       at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                       at::IntArrayRef output_padding, int64_t groups) {
  const auto host_bias = bias && bias->defined() ? std::optional(bias->cpu()) : std::nullopt;
  return at::convolution(input.cpu(), weight.cpu(), host_bias, stride, padding, dilation,
                         transposed, output_padding, groups)
      .to(input.device());
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(
    const at::Tensor& grad, const at::Tensor& input, const at::Tensor& weight,
    at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
    at::IntArrayRef output_padding, int64_t groups, std::array<bool, 3> mask) {
  const std::vector<int64_t> bias_size{grad.size(1)};
  const auto [of_input, of_weight, of_bias] =
      at::convolution_backward(grad.cpu(), input.cpu(), weight.cpu(), bias_size, stride, padding,
                               dilation, transposed, output_padding, groups, mask);
  const auto back = [&](const at::Tensor& made) {
    return made.defined() ? made.to(input.device()) : made;
  };
  return {back(of_input), back(of_weight), back(of_bias)};
}
// [docs: end]

} // namespace

// [docs: fallback-registration]
TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
}
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("native_batch_norm", native_batch_norm);
  m.impl("convolution_overrideable", convolution);
  m.impl("convolution_backward_overrideable", convolution_backward);
}
// [docs: end]

} // namespace torch_minimal
