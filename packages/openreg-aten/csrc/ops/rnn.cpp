// SPDX-License-Identifier: BSD-3-Clause
// Fused LSTM and GRU cells. PyTorch uses them for every PrivateUse1 device that
// has no kernels for whole layers (rnn_layers.cpp); here it uses them only
// under autocast. They have no CPU kernel, so they are written in ATen, as
// operators of this library that the boxed kernel can run.
#include "base/keys.h"
#include "base/mechanism.h"
#include "kernel/boxed.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros_like.h>
#include <torch/library.h>

namespace openreg::aten {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

constexpr char kLstmCell[] = "openreg::fused_lstm_cell";
constexpr char kLstmCellBackward[] = "openreg::fused_lstm_cell_backward_impl";
constexpr char kGruCell[] = "openreg::fused_gru_cell";
constexpr char kGruCellBackward[] = "openreg::fused_gru_cell_backward";

at::Tensor plus(const at::Tensor& value, const OptionalTensor& bias) {
  return bias && bias->defined() ? value + *bias : value;
}

at::Tensor sigmoid_slope(const at::Tensor& value) {
  return value * (1 - value);
}

at::Tensor tanh_slope(const at::Tensor& value) {
  return 1 - value * value;
}

at::Tensor bias_gradient(const at::Tensor& gates, bool has_bias) {
  return has_bias ? gates.sum(0) : at::Tensor();
}

// Gates, [batch, 4 * hidden], in the order input, forget, cell, output. The
// workspace contains them after the activation.
std::tuple<at::Tensor, at::Tensor, at::Tensor> fused_lstm_cell(
    const at::Tensor& input_gates,
    const at::Tensor& hidden_gates,
    const at::Tensor& cx,
    const OptionalTensor& input_bias,
    const OptionalTensor& hidden_bias) {
  at::Tensor workspace =
      plus(hidden_gates, hidden_bias).add(plus(input_gates, input_bias));
  const auto gates = workspace.unsafe_chunk(4, 1);
  const at::Tensor input = gates[0].sigmoid_();
  const at::Tensor forget = gates[1].sigmoid_();
  const at::Tensor cell = gates[2].tanh_();
  const at::Tensor output = gates[3].sigmoid_();
  at::Tensor cy = (forget * cx).add_(input * cell);
  at::Tensor hy = output * cy.tanh();
  return {std::move(hy), std::move(cy), std::move(workspace)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> fused_lstm_cell_backward(
    const OptionalTensor& grad_hy,
    const OptionalTensor& grad_cy,
    const at::Tensor& cx,
    const at::Tensor& cy,
    const at::Tensor& workspace,
    bool has_bias) {
  const auto or_zero = [&](const OptionalTensor& grad) {
    return grad && grad->defined() ? *grad : at::zeros_like(cy);
  };
  const at::Tensor grad_h = or_zero(grad_hy);
  const auto gates = workspace.unsafe_chunk(4, 1);
  const at::Tensor &input = gates[0], &forget = gates[1], &cell = gates[2],
                   &output = gates[3];
  const at::Tensor squashed = cy.tanh();
  const at::Tensor grad_c =
      or_zero(grad_cy) + grad_h * output * tanh_slope(squashed);
  at::Tensor grad_gates = at::cat(
      {grad_c * cell * sigmoid_slope(input),
       grad_c * cx * sigmoid_slope(forget),
       grad_c * input * tanh_slope(cell),
       grad_h * squashed * sigmoid_slope(output)},
      1);
  at::Tensor grad_bias = bias_gradient(grad_gates, has_bias);
  return {std::move(grad_gates), grad_c * forget, std::move(grad_bias)};
}

// Gates, [batch, 3 * hidden], in the order reset, update, new. The workspace,
// [batch, 5 * hidden], contains them after the activation, then hx and the
// hidden part of the new gate.
std::tuple<at::Tensor, at::Tensor> fused_gru_cell(
    const at::Tensor& input_gates,
    const at::Tensor& hidden_gates,
    const at::Tensor& hx,
    const OptionalTensor& input_bias,
    const OptionalTensor& hidden_bias) {
  const auto from_input = plus(input_gates, input_bias).unsafe_chunk(3, 1);
  // A copy to activate in place, as the CPU does: the rounding of a vectorized
  // sigmoid depends on the index of an element in its row.
  const at::Tensor hidden =
      plus(hidden_gates, hidden_bias).clone(at::MemoryFormat::Contiguous);
  const auto from_hidden = hidden.unsafe_chunk(3, 1);
  const at::Tensor reset = from_hidden[0].add_(from_input[0]).sigmoid_();
  const at::Tensor update = from_hidden[1].add_(from_input[1]).sigmoid_();
  const at::Tensor fresh = from_input[2].add(from_hidden[2] * reset).tanh_();
  at::Tensor hy = (hx - fresh).mul_(update).add_(fresh);
  return {
      std::move(hy), at::cat({reset, update, fresh, hx, from_hidden[2]}, 1)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>
fused_gru_cell_backward(
    const at::Tensor& grad_hy,
    const at::Tensor& workspace,
    bool has_bias) {
  const auto saved = workspace.unsafe_chunk(5, 1);
  const at::Tensor &reset = saved[0], &update = saved[1], &fresh = saved[2],
                   &hx = saved[3], &hidden = saved[4];
  const at::Tensor grad_update = grad_hy * (hx - fresh) * sigmoid_slope(update);
  const at::Tensor grad_fresh = grad_hy * (1 - update) * tanh_slope(fresh);
  const at::Tensor grad_reset = grad_fresh * hidden * sigmoid_slope(reset);
  at::Tensor grad_input = at::cat({grad_reset, grad_update, grad_fresh}, 1);
  at::Tensor grad_hidden =
      at::cat({grad_reset, grad_update, grad_fresh * reset}, 1);
  at::Tensor grad_input_bias = bias_gradient(grad_input, has_bias);
  at::Tensor grad_hidden_bias = bias_gradient(grad_hidden, has_bias);
  return {
      std::move(grad_input),
      std::move(grad_hidden),
      grad_hy * update,
      std::move(grad_input_bias),
      std::move(grad_hidden_bias)};
}

} // namespace

OPENREG_MECHANISM(
    rnn,
    "aten::_thnn_fused_lstm_cell, _thnn_fused_gru_cell",
    "LSTM and GRU layers fail under autocast") {
  static torch::Library schemas(
      torch::Library::FRAGMENT, "openreg", std::nullopt, __FILE__, __LINE__);
  schemas.def(
      "fused_lstm_cell(Tensor input_gates, Tensor hidden_gates, Tensor cx, "
      "Tensor? input_bias, Tensor? hidden_bias) -> (Tensor, Tensor, Tensor)");
  schemas.def(
      "fused_lstm_cell_backward_impl(Tensor? grad_hy, Tensor? grad_cy, "
      "Tensor cx, Tensor cy, Tensor workspace, bool has_bias) "
      "-> (Tensor, Tensor, Tensor)");
  schemas.def(
      "fused_gru_cell(Tensor input_gates, Tensor hidden_gates, Tensor hx, "
      "Tensor? input_bias, Tensor? hidden_bias) -> (Tensor, Tensor)");
  schemas.def(
      "fused_gru_cell_backward(Tensor grad_hy, Tensor workspace, "
      "bool has_bias) -> (Tensor, Tensor, Tensor, Tensor, Tensor)");
  static auto cpu = MAKE_TORCH_LIBRARY_IMPL(openreg, CPU);
  cpu.impl("fused_lstm_cell", TORCH_FN(fused_lstm_cell));
  cpu.impl("fused_lstm_cell_backward_impl", TORCH_FN(fused_lstm_cell_backward));
  cpu.impl("fused_gru_cell", TORCH_FN(fused_gru_cell));
  cpu.impl("fused_gru_cell_backward", TORCH_FN(fused_gru_cell_backward));

  static auto library = OPENREG_LIBRARY_IMPL(aten, kDenseKey);
  using torch::CppFunction;
  library.impl(
      "_thnn_fused_lstm_cell",
      CppFunction::makeFromBoxedFunction<&run_as<kLstmCell>>());
  library.impl(
      "_thnn_fused_lstm_cell_backward_impl",
      CppFunction::makeFromBoxedFunction<&run_as<kLstmCellBackward>>());
  library.impl(
      "_thnn_fused_gru_cell",
      CppFunction::makeFromBoxedFunction<&run_as<kGruCell>>());
  library.impl(
      "_thnn_fused_gru_cell_backward",
      CppFunction::makeFromBoxedFunction<&run_as<kGruCellBackward>>());
}

} // namespace openreg::aten
