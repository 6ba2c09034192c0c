// SPDX-License-Identifier: BSD-3-Clause
// LSTM, GRU and RNN layers and cells as on the CPU. PyTorch composes them of
// other operators and checks the device type: on a device, it multiplies the
// input of each step separately and calls fused cells (rnn.cpp). On the CPU, it
// multiplies the inputs of all steps in one product, or calls oneDNN for each
// layer of an LSTM. These kernels are also composed of operators, so
// derivatives and transforms come from their parts.
#include "base/keys.h"
#include "base/mechanism.h"
#include "facts/operators.h"
#include "facts/wider_dtypes.h"
#include "kernel/boxed.h"
#include "ops/rnn_steps.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/native/RNN.h>
#include <ATen/ops/gru_native.h>
#include <ATen/ops/lstm_native.h>
#include <ATen/ops/mkldnn_rnn_layer.h>
#include <ATen/ops/rnn_relu_native.h>
#include <ATen/ops/rnn_tanh_native.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/PythonDispatcherTLS.h>
#include <torch/library.h>

#include <algorithm>
#include <utility>

namespace openreg::aten {
namespace {

using namespace rnn;
using OptionalTensor = std::optional<Tensor>;

// ---- oneDNN's layers -------------------------------------------------------

/// Whether an LSTM has projections: its two states then differ in size.
bool has_projections(TensorList hx) {
  return hx[0].sym_size(2) != hx[1].sym_size(2);
}

/// Calls a PyTorch function that reports what the CPU supports.
bool supports(const char* question) {
  const auto op = c10::Dispatcher::singleton().findSchema({question, ""});
  return op && op->typed<bool()>().call();
}

/// Whether the CPU would run an LSTM with oneDNN.
bool uses_onednn(const Tensor& input, TensorList params, TensorList hx) {
  static const bool bfloat16 = supports("mkldnn::_is_mkldnn_bf16_supported");
  static const bool half = supports("mkldnn::_is_mkldnn_fp16_supported");
  const auto on_device = [](TensorList tensors) {
    return std::all_of(tensors.begin(), tensors.end(), [](const Tensor& each) {
      return each.device().type() == kDeviceType;
    });
  };
  const auto dtype = input.scalar_type();
  const bool training = at::GradMode::is_enabled();
  // A graph that was traced for training runs without grad mode. The oneDNN
  // layer would then save nothing for the backward pass.
  const bool traced_training =
      training && c10::impl::PythonDispatcherTLS::get_state() != nullptr;
  return at::globalContext().hasMKLDNN() &&
      at::globalContext().userEnabledMkldnn() && on_device(params) &&
      on_device(hx) &&
      (dtype == at::kFloat || (dtype == at::kBFloat16 && bfloat16) ||
       (dtype == at::kHalf && half && !training)) &&
      !traced_training && !has_projections(hx) &&
      !hx[0].unsafeGetTensorImpl()->has_symbolic_sizes_strides() &&
      input.sym_numel() != 0;
}

/// Runs all layers, with one call of oneDNN per layer and direction.
TwoStates run_onednn(
    const Tensor& input,
    TensorList hx,
    TensorList params,
    const Options& options,
    bool batch_first) {
  // Among dnnl's kinds of layers, in PyTorch's numbering.
  constexpr int64_t kLstm = 2;
  const Layer layer = [&](const Tensor& x,
                          const State& state,
                          const Weights& weights,
                          bool reversed) -> Result {
    const auto bias = [&](const Tensor& given, const Tensor& weight) {
      return given.defined() ? given
                             : at::zeros(weight.sizes(), weight.options());
    };
    auto [output, h, c, workspace] = at::mkldnn_rnn_layer(
        x,
        weights.input,
        weights.hidden,
        bias(weights.input_bias, weights.input),
        bias(weights.hidden_bias, weights.hidden),
        state.h,
        state.c,
        reversed,
        /*batch_sizes=*/{},
        kLstm,
        hx[0].size(2),
        options.num_layers,
        options.has_biases,
        options.bidirectional,
        batch_first,
        options.train);
    return {std::move(output), {std::move(h), std::move(c)}};
  };
  const Tensor steps =
      (batch_first ? input.transpose(0, 1) : input).contiguous();
  const Tensor h = hx[0].contiguous();
  const Tensor c = hx[1].contiguous();
  std::vector<State> states;
  for (int64_t i = 0; i < h.size(0); ++i) {
    states.push_back({h[i], c[i]});
  }
  return run_two_states(
      layer, steps, std::move(states), params, options, false);
}

constexpr char kOneDnnLayer[] = "aten::mkldnn_rnn_layer";
constexpr char kTrainingLayer[] = "openreg::mkldnn_rnn_layer_training";
constexpr char kInferenceLayer[] = "openreg::mkldnn_rnn_layer_inference";

/// The CPU kernel, which reads the grad mode of its thread.
template <bool training>
void run_onednn_layer(const c10::OperatorHandle&, torch::jit::Stack* stack) {
  static const auto layer =
      c10::Dispatcher::singleton().findSchemaOrThrow(kOneDnnLayer, "");
  const at::AutoGradMode mode(training);
  layer.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
}

/// One operator per grad mode: the mode changes the results, and the thread
/// that runs the kernel may have a different one.
void choose_onednn_layer(const c10::OperatorHandle&, torch::jit::Stack* stack) {
  auto& dispatcher = c10::Dispatcher::singleton();
  static const auto training = dispatcher.findSchemaOrThrow(kTrainingLayer, "");
  static const auto inference =
      dispatcher.findSchemaOrThrow(kInferenceLayer, "");
  const auto& layer = at::GradMode::is_enabled() ? training : inference;
  run_boxed(layer, stack, layer);
}

// ---- layers ----------------------------------------------------------------

template <Cell cell>
OneState one_state_input(
    const Tensor& input,
    const Tensor& hx,
    TensorList params,
    bool has_biases,
    int64_t num_layers,
    double dropout,
    bool train,
    bool bidirectional,
    bool batch_first) {
  at::native::check_attributes(input, params, hx);
  OneState result = run_one_state(
      padded(cell),
      batch_first ? input.transpose(0, 1) : input,
      hx,
      params,
      {has_biases, num_layers, dropout, train, bidirectional});
  if (batch_first) {
    std::get<0>(result).transpose_(0, 1);
  }
  return result;
}

template <Cell cell>
OneState one_state_data(
    const Tensor& data,
    const Tensor& batch_sizes,
    const Tensor& hx,
    TensorList params,
    bool has_biases,
    int64_t num_layers,
    double dropout,
    bool train,
    bool bidirectional) {
  return run_one_state(
      packed(cell, batch_sizes),
      data,
      hx,
      params,
      {has_biases, num_layers, dropout, train, bidirectional});
}

TwoStates lstm_input(
    const Tensor& input,
    TensorList hx,
    TensorList params,
    bool has_biases,
    int64_t num_layers,
    double dropout,
    bool train,
    bool bidirectional,
    bool batch_first) {
  const Options options{has_biases, num_layers, dropout, train, bidirectional};
  TORCH_CHECK(hx.size() == 2, "lstm expects two hidden states");
  TwoStates result;
  if (uses_onednn(input, params, hx)) {
    result = run_onednn(input, hx, params, options, batch_first);
  } else {
    at::native::check_attributes(input, params, hx);
    result = run_two_states(
        padded(lstm_step),
        batch_first ? input.transpose(0, 1) : input,
        states_of(hx),
        params,
        options,
        has_projections(hx));
  }
  if (batch_first) {
    std::get<0>(result) = std::get<0>(result).transpose(0, 1);
  }
  return result;
}

TwoStates lstm_data(
    const Tensor& data,
    const Tensor& batch_sizes,
    TensorList hx,
    TensorList params,
    bool has_biases,
    int64_t num_layers,
    double dropout,
    bool train,
    bool bidirectional) {
  const Options options{has_biases, num_layers, dropout, train, bidirectional};
  TORCH_CHECK(hx.size() == 2, "lstm expects two hidden states");
  return run_two_states(
      packed(lstm_step, batch_sizes),
      data,
      states_of(hx),
      params,
      options,
      has_projections(hx));
}

// ---- 16-bit floats ---------------------------------------------------------

/// Whether layers compute in float32 for tensors of a dtype.
bool computes_in_float32(const Tensor& tensor) {
  static const uint64_t dtypes =
      uses_float32_kernels() ? facts_of("aten::lstm", "").slow_dtypes : 0;
  return tensor.device().type() == kDeviceType &&
      (dtype_bit(tensor.scalar_type()) & dtypes) != 0;
}

/// The batch sizes of a packed input are host integers.
bool widens(const Tensor& tensor) {
  return !tensor.is_floating_point() || computes_in_float32(tensor);
}
/// As the layers of the CPU, which reject tensors of several dtypes.
bool widens(TensorList tensors) {
  return std::all_of(tensors.begin(), tensors.end(), &computes_in_float32);
}
template <typename Other>
bool widens(const Other&) {
  return true;
}

struct Widened {
  std::vector<Tensor> tensors;
  operator TensorList() const { // NOLINT: implicit on purpose
    return tensors;
  }
};

Tensor widen(const Tensor& tensor) {
  return tensor.is_floating_point() ? tensor.to(at::kFloat) : tensor;
}
Widened widen(TensorList tensors) {
  Widened wide;
  for (const Tensor& tensor : tensors) {
    wide.tensors.push_back(widen(tensor));
  }
  return wide;
}
template <typename Other>
Other widen(const Other& other) {
  return other;
}

template <typename... Tensors>
std::tuple<Tensors...> narrow(
    const std::tuple<Tensors...>& results,
    c10::ScalarType dtype) {
  return std::apply(
      [&](const auto&... each) { return std::tuple(each.to(dtype)...); },
      results);
}

/// Calls a layer of this file, or under autocast the layer of PyTorch that CUDA
/// uses: it casts the inputs of the fused cells, so that results have the same
/// dtypes as on CUDA.
template <typename Kernel>
struct UnlessAutocast;
template <typename Result, typename... Args>
struct UnlessAutocast<Result(Args...)> {
  template <Result (*layer)(Args...), Result (*composite)(Args...)>
  static Result run(Args... args) {
    if (at::autocast::is_autocast_enabled(kDeviceType)) {
      return composite(args...);
    }
    const Tensor& input = std::get<0>(std::tie(args...));
    if (C10_UNLIKELY(computes_in_float32(input)) && (widens(args) && ...)) {
      return narrow(layer(widen(args)...), input.scalar_type());
    }
    return layer(args...);
  }
};
using OneInput = UnlessAutocast<decltype(one_state_input<gru_step>)>;
using OneData = UnlessAutocast<decltype(one_state_data<gru_step>)>;
using TwoInput = UnlessAutocast<decltype(lstm_input)>;
using TwoData = UnlessAutocast<decltype(lstm_data)>;

// ---- cells -----------------------------------------------------------------

void check_cell(
    int64_t gates,
    const Tensor& input,
    TensorList hx,
    const Tensor& w_ih,
    const Tensor& w_hh) {
  const auto size = w_hh.sym_size(1);
  TORCH_CHECK(
      input.sym_size(1) == w_ih.sym_size(1),
      "input has inconsistent input_size: got ",
      input.sym_size(1),
      " expected ",
      w_ih.sym_size(1));
  const auto check_weight = [&](const char* name, const Tensor& weight) {
    TORCH_CHECK(
        weight.sym_size(0) == gates * size,
        name,
        " first dim must be ",
        gates,
        " * hidden_size = ",
        gates * size,
        ", but got ",
        weight.sym_size(0));
  };
  check_weight("weight_ih", w_ih);
  check_weight("weight_hh", w_hh);
  for (size_t i = 0; i < hx.size(); ++i) {
    TORCH_CHECK(
        input.sym_size(0) == hx[i].sym_size(0),
        "Input batch size ",
        input.sym_size(0),
        " doesn't match hidden",
        i,
        " batch size ",
        hx[i].sym_size(0));
    TORCH_CHECK(
        hx[i].sym_size(1) == size,
        "hidden",
        i,
        " has inconsistent hidden_size: got ",
        hx[i].sym_size(1),
        ", expected ",
        size);
  }
}

Weights cell_weights(
    const Tensor& w_ih,
    const Tensor& w_hh,
    const OptionalTensor& b_ih,
    const OptionalTensor& b_hh) {
  return {w_ih, w_hh, b_ih.value_or(Tensor()), b_hh.value_or(Tensor()), {}};
}

OneState lstm_cell(
    const Tensor& input,
    TensorList hx,
    const Tensor& w_ih,
    const Tensor& w_hh,
    const OptionalTensor& b_ih,
    const OptionalTensor& b_hh) {
  TORCH_CHECK(hx.size() == 2, "lstm_cell expects two hidden states");
  check_cell(4, input, hx, w_ih, w_hh);
  State state = lstm_step(
      input,
      /*projected=*/false,
      {hx[0], hx[1]},
      cell_weights(w_ih, w_hh, b_ih, b_hh));
  return {std::move(state.h), std::move(state.c)};
}

Tensor gru_cell(
    const Tensor& input,
    const Tensor& hx,
    const Tensor& w_ih,
    const Tensor& w_hh,
    const OptionalTensor& b_ih,
    const OptionalTensor& b_hh) {
  check_cell(3, input, hx, w_ih, w_hh);
  return gru_step(
             input,
             /*projected=*/false,
             {hx, {}},
             cell_weights(w_ih, w_hh, b_ih, b_hh))
      .h;
}

void register_layers(torch::Library& library) {
  namespace native = at::native;
  library.impl(
      "lstm.input", TORCH_FN((TwoInput::run<lstm_input, native::lstm>)));
  library.impl("lstm.data", TORCH_FN((TwoData::run<lstm_data, native::lstm>)));
  library.impl(
      "gru.input",
      TORCH_FN((OneInput::run<one_state_input<gru_step>, native::gru>)));
  library.impl(
      "gru.data",
      TORCH_FN((OneData::run<one_state_data<gru_step>, native::gru>)));
  library.impl(
      "rnn_tanh.input",
      TORCH_FN((OneInput::run<one_state_input<tanh_step>, native::rnn_tanh>)));
  library.impl(
      "rnn_tanh.data",
      TORCH_FN((OneData::run<one_state_data<tanh_step>, native::rnn_tanh>)));
  library.impl(
      "rnn_relu.input",
      TORCH_FN((OneInput::run<one_state_input<relu_step>, native::rnn_relu>)));
  library.impl(
      "rnn_relu.data",
      TORCH_FN((OneData::run<one_state_data<relu_step>, native::rnn_relu>)));
  library.impl("lstm_cell", TORCH_FN(lstm_cell));
  library.impl("gru_cell", TORCH_FN(gru_cell));
}

} // namespace

OPENREG_MECHANISM(
    rnn_layers,
    "TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1): lstm, gru, rnn_tanh, "
    "rnn_relu",
    "LSTM, GRU and RNN layers round differently than on the CPU") {
  // Registered for both keys: without the first, autograd would see a single
  // operator without a derivative, and inference mode uses only the second.
  static auto autograd = OPENREG_LIBRARY_IMPL(aten, kAutogradKey);
  static auto library = OPENREG_LIBRARY_IMPL(aten, kDenseKey);
  register_layers(autograd);
  register_layers(library);

  using torch::CppFunction;
  static torch::Library schemas(
      torch::Library::FRAGMENT, "openreg", std::nullopt, __FILE__, __LINE__);
  static auto cpu = MAKE_TORCH_LIBRARY_IMPL(openreg, CPU);
  const auto schema =
      c10::Dispatcher::singleton().findSchemaOrThrow(kOneDnnLayer, "").schema();
  schemas.def(schema.cloneWithName(kTrainingLayer, ""));
  schemas.def(schema.cloneWithName(kInferenceLayer, ""));
  cpu.impl(
      kTrainingLayer,
      CppFunction::makeFromBoxedFunction<&run_onednn_layer<true>>());
  cpu.impl(
      kInferenceLayer,
      CppFunction::makeFromBoxedFunction<&run_onednn_layer<false>>());
  library.impl(
      "mkldnn_rnn_layer",
      CppFunction::makeFromBoxedFunction<&choose_onednn_layer>());
}

} // namespace openreg::aten
