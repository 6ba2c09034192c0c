// SPDX-License-Identifier: BSD-3-Clause
// The CPU's steps of recurrent layers, composed of other operators.
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

/// Of one layer and direction. The biases may be undefined, and the projection
/// is, but for LSTMs with proj_size.
struct Weights {
  Tensor input, hidden, input_bias, hidden_bias, projection;
};
/// An LSTM's; the others have no `c`.
struct State {
  Tensor h, c;
};

/// One step. `projected` says that `input` is multiplied by its weight already.
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

/// A layer over a tensor whose first dimension is time.
Layer padded(Cell cell);
/// A layer over a packed sequence: one row after another of each step, of which
/// `batch_sizes`, on the CPU, has the number of rows.
Layer packed(Cell cell, const Tensor& batch_sizes);

struct Options {
  bool has_biases;
  int64_t num_layers;
  double dropout;
  bool train;
  bool bidirectional;
};

/// Runs all layers of an RNN or a GRU. `hx` has one row for each layer and
/// direction; `params` are the weights of each, in PyTorch's order.
OneState run_one_state(
    const Layer& layer,
    const Tensor& input,
    const Tensor& hx,
    TensorList params,
    const Options& options);

/// The states of all layers of an LSTM, whose `hx` are the hidden and the cell
/// state.
std::vector<State> states_of(TensorList hx);

/// The same as run_one_state() for an LSTM.
TwoStates run_two_states(
    const Layer& layer,
    const Tensor& input,
    std::vector<State> states,
    TensorList params,
    const Options& options,
    bool has_projections);

} // namespace openreg::aten::rnn
