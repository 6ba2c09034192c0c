// SPDX-License-Identifier: BSD-3-Clause
// The steps of recurrent layers as on the CPU, composed of other operators.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <tuple>
#include <vector>

namespace openreg::aten::rnn {

using at::Tensor;
using at::TensorList;
using OneState = std::tuple<Tensor, Tensor>; // output and last state
using TwoStates = std::tuple<Tensor, Tensor, Tensor>;

/// The weights of one layer and direction. The biases may be undefined. The
/// projection is defined only for LSTMs with proj_size.
struct Weights {
  Tensor input, hidden, input_bias, hidden_bias, projection;
};
/// The state of a layer. Only an LSTM has `c`.
struct State {
  Tensor h, c;
};

/// Computes one step. `projected` means that `input` has already been
/// multiplied by its weight.
using Cell = State (*)(
    const Tensor& input,
    bool projected,
    const State& state,
    const Weights& weights);

State tanh_step(const Tensor&, bool, const State&, const Weights&);
State relu_step(const Tensor&, bool, const State&, const Weights&);
State lstm_step(const Tensor&, bool, const State&, const Weights&);
State gru_step(const Tensor&, bool, const State&, const Weights&);

struct Result {
  Tensor output;
  State state;
};
using Layer = std::function<
    Result(const Tensor& input, State state, const Weights&, bool reversed)>;

/// Returns a layer for a tensor whose first dimension is time.
Layer padded(Cell cell);
/// Returns a layer for a packed sequence: the rows of one step after another.
/// `batch_sizes`, on the CPU, has the number of rows per step.
Layer packed(Cell cell, const Tensor& batch_sizes);

struct Options {
  bool has_biases;
  int64_t num_layers;
  double dropout;
  bool train;
  bool bidirectional;
};

/// Runs all layers of an RNN or a GRU. `hx` has one row per layer and
/// direction; `params` are their weights, in PyTorch's order.
OneState run_one_state(
    const Layer& layer,
    const Tensor& input,
    const Tensor& hx,
    TensorList params,
    const Options& options);

/// Returns the states of all layers of an LSTM. `hx` are the hidden state and
/// the cell state.
std::vector<State> states_of(TensorList hx);

/// Runs all layers of an LSTM, as run_one_state() does for other layers.
TwoStates run_two_states(
    const Layer& layer,
    const Tensor& input,
    std::vector<State> states,
    TensorList params,
    const Options& options,
    bool has_projections);

} // namespace openreg::aten::rnn
