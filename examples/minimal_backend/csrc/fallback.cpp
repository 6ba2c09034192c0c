// SPDX-License-Identifier: BSD-3-Clause
// The CPU fallback: operators without a device kernel run on the CPU.
#include "fallback.h"

#include <ATen/TensorOperators.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_native_batch_norm_legit.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <torch/library.h>

// [step 9]
#include "generator.h"
// [step end]

namespace torch_minimal {
namespace {

// [docs: same-device]
/// Checks that all tensors of an operator are on one device. Without this check, the
/// CPU would compute with copies from several devices.
struct SameDevice {
  std::optional<c10::Device> device;

  /// A zero-dimensional CPU tensor is a scalar and may be mixed in.
  void check(const at::Tensor& tensor) {
    if (!tensor.defined() || (tensor.is_cpu() && tensor.dim() == 0)) return;
    if (!device) device = tensor.device();
    TORCH_CHECK(tensor.device() == *device,
                "Expected all tensors to be on the same device, but found at least two devices, ",
                *device, " and ", tensor.device(), "!");
  }
  /// Indices (lists of optional tensors) and lengths may be on the CPU.
  void check(const c10::Argument& argument, const c10::IValue& value) {
    const bool lengths = argument.name().find("lengths") != std::string::npos;
    if (value.isTensor() && !lengths) check(value.toTensor());
    if (!value.isTensorList()) return;
    for (const at::Tensor& each : value.toTensorVector()) check(each);
  }
};
// [docs: end]

} // namespace

// [docs: fallback]
void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto& arguments = op.schema().arguments();
  SameDevice same;
  for (size_t i = 0; i < arguments.size(); ++i) {
    same.check(arguments[i], torch::jit::peek(*stack, i, arguments.size()));
  }
  // [step 9]
  replace_generators(op, stack);
  // [step end]
  // A view of a copy would not share memory with the base, so this raises an error.
  at::native::cpu_fallback(op, stack, /*error_on_views=*/true);
}
// [docs: end]

namespace {

// [docs: unannotated]
// The schema does not mark the running statistics as written, so the fallback would
// not copy them back. The schema of _native_batch_norm_legit marks them.
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
// These operators have a composite kernel, which raises an error, so the dispatcher
// never calls the fallback for them.
at::Tensor convolution(const at::Tensor& input, const at::Tensor& weight,
                       const std::optional<at::Tensor>& bias, at::IntArrayRef stride,
                       at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                       at::IntArrayRef output_padding, int64_t groups) {
  SameDevice same;
  for (const at::Tensor& each : {input, weight, bias.value_or(at::Tensor())}) same.check(each);
  const auto host_bias = bias && bias->defined() ? std::optional(bias->cpu()) : std::nullopt;
  return at::convolution(input.cpu(), weight.cpu(), host_bias, stride, padding, dilation,
                         transposed, output_padding, groups)
      .to(input.device());
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(
    const at::Tensor& grad, const at::Tensor& input, const at::Tensor& weight,
    at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
    at::IntArrayRef output_padding, int64_t groups, std::array<bool, 3> mask) {
  SameDevice same;
  for (const at::Tensor& each : {grad, input, weight}) same.check(each);
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

// [docs: fused-cells]
// LSTM and GRU layers call these on a PrivateUse1 device, and the CPU has no kernel for
// them. Here they are composed of other operators, which provide the derivatives. The
// last result is the workspace for the derivative of a fused kernel.
at::Tensor plus(const at::Tensor& gates, const std::optional<at::Tensor>& bias) {
  return bias && bias->defined() ? gates + *bias : gates;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell(
    const at::Tensor& from_input, const at::Tensor& from_hidden, const at::Tensor& cx,
    const std::optional<at::Tensor>& input_bias, const std::optional<at::Tensor>& hidden_bias) {
  const at::Tensor gates = plus(from_input, input_bias) + plus(from_hidden, hidden_bias);
  const auto part = gates.chunk(4, 1); // input, forget, cell, output
  const at::Tensor cy = part[1].sigmoid() * cx + part[0].sigmoid() * part[2].tanh();
  return {part[3].sigmoid() * cy.tanh(), cy, gates};
}

std::tuple<at::Tensor, at::Tensor> gru_cell(const at::Tensor& from_input,
                                            const at::Tensor& from_hidden, const at::Tensor& hx,
                                            const std::optional<at::Tensor>& input_bias,
                                            const std::optional<at::Tensor>& hidden_bias) {
  const auto in = plus(from_input, input_bias).chunk(3, 1); // reset, update, new
  const auto hidden = plus(from_hidden, hidden_bias).chunk(3, 1);
  const at::Tensor made = (in[2] + (in[0] + hidden[0]).sigmoid() * hidden[2]).tanh();
  return {(hx - made) * (in[1] + hidden[1]).sigmoid() + made, made};
}

TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) {
  m.impl("_thnn_fused_lstm_cell", lstm_cell);
  m.impl("_thnn_fused_gru_cell", gru_cell);
}
// [docs: end]

} // namespace

// [docs: fallback-registration]
TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
}
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("native_batch_norm", native_batch_norm);
  m.impl("_thnn_fused_lstm_cell", lstm_cell); // under torch.inference_mode()
  m.impl("_thnn_fused_gru_cell", gru_cell);
  m.impl("convolution_overrideable", convolution);
  m.impl("convolution_backward_overrideable", convolution_backward);
}
// [docs: end]

} // namespace torch_minimal
