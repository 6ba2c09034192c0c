// SPDX-License-Identifier: BSD-3-Clause
// The steps of recurrent layers as on the CPU. The order of the operators
// matters: the backward pass adds gradients in the reverse order.
#include "ops/rnn_steps.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <utility>

namespace openreg::aten::rnn {

// ---- cells -----------------------------------------------------------------

namespace {

Tensor project_input(const Tensor& input, const Weights& weights) {
  return at::linear(input, weights.input, weights.input_bias);
}

Tensor project_hidden(const Tensor& hidden, const Weights& weights) {
  return at::linear(hidden, weights.hidden, weights.hidden_bias);
}

Tensor sum_of_gates(
    const Tensor& input,
    bool projected,
    const Tensor& hidden,
    const Weights& weights) {
  Tensor gates = project_hidden(hidden, weights);
  return gates.add_(projected ? input : project_input(input, weights));
}

} // namespace

State tanh_step(
    const Tensor& input,
    bool projected,
    const State& state,
    const Weights& weights) {
  return {sum_of_gates(input, projected, state.h, weights).tanh(), {}};
}

State relu_step(
    const Tensor& input,
    bool projected,
    const State& state,
    const Weights& weights) {
  return {sum_of_gates(input, projected, state.h, weights).relu(), {}};
}

State lstm_step(
    const Tensor& input,
    bool projected,
    const State& state,
    const Weights& weights) {
  const auto gates =
      sum_of_gates(input, projected, state.h, weights).unsafe_chunk(4, 1);
  const Tensor take = gates[0].sigmoid_();
  const Tensor forget = gates[1].sigmoid_();
  const Tensor fresh = gates[2].tanh_();
  const Tensor give = gates[3].sigmoid_();
  Tensor c = (forget * state.c).add_(take * fresh);
  Tensor h = give * c.tanh();
  if (weights.projection.defined()) {
    h = at::matmul(h, weights.projection.t());
  }
  return {std::move(h), std::move(c)};
}

State gru_step(
    const Tensor& input,
    bool projected,
    const State& state,
    const Weights& weights) {
  const auto from_input =
      (projected ? input : project_input(input, weights)).unsafe_chunk(3, 1);
  const auto from_hidden = project_hidden(state.h, weights).unsafe_chunk(3, 1);
  const Tensor reset = from_hidden[0].add_(from_input[0]).sigmoid_();
  const Tensor update = from_hidden[1].add_(from_input[1]).sigmoid_();
  const Tensor fresh = from_input[2].add(from_hidden[2].mul_(reset)).tanh_();
  return {(state.h - fresh).mul_(update).add_(fresh), {}};
}

// ---- one layer, in one direction -------------------------------------------

namespace {

Result run_padded(
    Cell cell,
    const Tensor& input,
    State state,
    const Weights& weights,
    bool reversed) {
  std::vector<Tensor> steps = project_input(input, weights).unbind(0);
  TORCH_CHECK(
      !steps.empty(), "Expected sequence length to be larger than 0 in RNN");
  if (reversed) {
    std::reverse(steps.begin(), steps.end());
  }
  for (Tensor& step : steps) {
    state = cell(step, /*projected=*/true, state, weights);
    step = state.h;
  }
  if (reversed) {
    std::reverse(steps.begin(), steps.end());
  }
  return {at::stack(steps, 0), std::move(state)};
}

State rows(const State& state, int64_t start, int64_t end) {
  const auto part = [&](const Tensor& each) {
    return each.defined() ? each.narrow(0, start, end - start) : each;
  };
  return {part(state.h), part(state.c)};
}

State join(const std::vector<State>& states) {
  std::vector<Tensor> h, c;
  for (const State& state : states) {
    h.push_back(state.h);
    if (state.c.defined()) {
      c.push_back(state.c);
    }
  }
  return {at::cat(h, 0), c.empty() ? Tensor() : at::cat(c, 0)};
}

/// Runs a packed batch, whose sequences are sorted from long to short: step
/// `step` contains the first `batch_sizes[step]` sequences. A sequence that
/// ends keeps its row of the state.
Result run_packed_forward(
    Cell cell,
    at::ArrayRef<int64_t> batch_sizes,
    const Tensor& gates,
    State state,
    const Weights& weights) {
  std::vector<Tensor> outputs;
  std::vector<State> finished;
  int64_t offset = 0;
  int64_t running = batch_sizes.front();
  for (const int64_t size : batch_sizes) {
    const Tensor step = gates.narrow(0, offset, size);
    offset += size;
    if (size < running) {
      finished.push_back(rows(state, size, running));
      state = rows(state, 0, size);
    }
    running = size;
    state = cell(step, /*projected=*/true, state, weights);
    outputs.push_back(state.h);
  }
  finished.push_back(std::move(state));
  std::reverse(finished.begin(), finished.end());
  return {at::cat(outputs, 0), join(finished)};
}

/// Runs from the end to the start. Each sequence joins with its initial state.
Result run_packed_reversed(
    Cell cell,
    at::ArrayRef<int64_t> batch_sizes,
    const Tensor& gates,
    const State& initial,
    const Weights& weights) {
  std::vector<Tensor> outputs;
  int64_t offset = gates.size(0);
  int64_t running = batch_sizes.back();
  State state = rows(initial, 0, running);
  for (size_t i = batch_sizes.size(); i-- > 0;) {
    const int64_t size = batch_sizes[i];
    if (size > running) {
      state = join({state, rows(initial, running, size)});
    }
    const Tensor step = gates.narrow(0, offset - size, size);
    offset -= size;
    running = size;
    state = cell(step, /*projected=*/true, state, weights);
    outputs.push_back(state.h);
  }
  std::reverse(outputs.begin(), outputs.end());
  return {at::cat(outputs, 0), std::move(state)};
}

} // namespace

Layer padded(Cell cell) {
  return [cell](
             const Tensor& input,
             State state,
             const Weights& weights,
             bool reversed) {
    return run_padded(cell, input, std::move(state), weights, reversed);
  };
}

Layer packed(Cell cell, const Tensor& batch_sizes) {
  TORCH_CHECK(
      batch_sizes.device().is_cpu() && batch_sizes.scalar_type() == at::kLong &&
          batch_sizes.dim() == 1 && batch_sizes.numel() > 0,
      "batch_sizes must be an int64 CPU tensor with one number per step, but "
      "got a tensor of dtype ",
      batch_sizes.scalar_type(),
      " on ",
      batch_sizes.device(),
      " with sizes ",
      batch_sizes.sizes());
  const Tensor sizes = batch_sizes.contiguous();
  const auto* data = sizes.const_data_ptr<int64_t>();
  return [cell, sizes = std::vector<int64_t>(data, data + sizes.numel())](
             const Tensor& input,
             State state,
             const Weights& weights,
             bool reversed) {
    const Tensor gates = project_input(input, weights);
    return reversed
        ? run_packed_reversed(cell, sizes, gates, state, weights)
        : run_packed_forward(cell, sizes, gates, std::move(state), weights);
  };
}

// ---- all layers ------------------------------------------------------------

namespace {

std::vector<Weights>
gather(TensorList params, bool has_biases, bool has_projections) {
  const size_t count = (has_biases ? 4 : 2) + (has_projections ? 1 : 0);
  TORCH_CHECK(
      params.size() % count == 0, "got an incorrect number of RNN parameters");
  std::vector<Weights> weights;
  for (size_t i = 0; i < params.size(); i += count) {
    weights.push_back(
        {params[i],
         params[i + 1],
         has_biases ? params[i + 2] : Tensor(),
         has_biases ? params[i + 3] : Tensor(),
         has_projections ? params[i + count - 1] : Tensor()});
  }
  return weights;
}

/// Replaces each state with the last state of its layer, and returns the
/// output.
Tensor run_layers(
    const Layer& layer,
    Tensor input,
    std::vector<State>& states,
    const std::vector<Weights>& weights,
    const Options& options) {
  const size_t directions = options.bidirectional ? 2 : 1;
  const auto count = static_cast<size_t>(options.num_layers) * directions;
  TORCH_CHECK(
      states.size() == count, "Expected more hidden states in stacked_rnn");
  TORCH_CHECK(weights.size() == count, "Expected more weights in stacked_rnn");
  for (size_t i = 0; i < count; i += directions) {
    std::vector<Tensor> outputs;
    for (size_t k = i; k < i + directions; ++k) {
      Result result = layer(input, states[k], weights[k], /*reversed=*/k > i);
      outputs.push_back(std::move(result.output));
      states[k] = std::move(result.state);
    }
    input = directions == 1 ? std::move(outputs[0]) : at::cat(outputs, -1);
    if (options.dropout != 0 && options.train && i + directions < count) {
      input = at::dropout(input, options.dropout, /*train=*/true);
    }
  }
  return input;
}

} // namespace

OneState run_one_state(
    const Layer& layer,
    const Tensor& input,
    const Tensor& hx,
    TensorList params,
    const Options& options) {
  std::vector<State> states;
  for (Tensor& h : hx.unbind(0)) {
    states.push_back({std::move(h), {}});
  }
  const auto weights = gather(params, options.has_biases, false);
  Tensor output = run_layers(layer, input, states, weights, options);
  std::vector<Tensor> h;
  for (State& state : states) {
    h.push_back(std::move(state.h));
  }
  return {std::move(output), at::stack(h, 0)};
}

std::vector<State> states_of(TensorList hx) {
  const auto h = hx[0].unbind(0);
  const auto c = hx[1].unbind(0);
  TORCH_CHECK(
      h.size() == c.size(),
      "Expected as many hidden states as cell states, but got ",
      h.size(),
      " and ",
      c.size());
  std::vector<State> states;
  for (size_t i = 0; i < h.size(); ++i) {
    states.push_back({h[i], c[i]});
  }
  return states;
}

TwoStates run_two_states(
    const Layer& layer,
    const Tensor& input,
    std::vector<State> states,
    TensorList params,
    const Options& options,
    bool has_projections) {
  const auto weights = gather(params, options.has_biases, has_projections);
  Tensor output = run_layers(layer, input, states, weights, options);
  std::vector<Tensor> h, c;
  for (State& state : states) {
    h.push_back(std::move(state.h));
    c.push_back(std::move(state.c));
  }
  Tensor hy = at::stack(h, 0);
  return {std::move(output), std::move(hy), at::stack(c, 0)};
}

} // namespace openreg::aten::rnn
