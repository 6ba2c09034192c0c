// SPDX-License-Identifier: BSD-3-Clause
// Quantizes and dequantizes, in the DispatchStubs that PyTorch's operators call
// for the device. The operators allocate the result and set its quantizer.
#include "base/keys.h"
#include "base/mechanism.h"
#include "call/dispatch_paths.h"
#include "device/device.h"
#include "kernel/boxed.h"
#include "kernel/typed.h"

#include <ATen/Context.h>
#include <ATen/native/quantized/AffineQuantizer.h>
#include <ATen/ops/dequantize_native.h>
#include <ATen/ops/dequantize_ops.h>
#include <ATen/ops/quantize_per_channel_native.h>
#include <ATen/ops/quantize_per_channel_ops.h>
#include <ATen/ops/quantize_per_tensor_native.h>
#include <ATen/ops/quantize_per_tensor_ops.h>
#include <torch/library.h>

namespace openreg::aten {
namespace {

/// Calls a function of PyTorch. Some stubs pass integral zero points as floats.
template <typename... To, typename... From>
void convert_and_call(
    at::Tensor& (*function)(const at::Tensor&, at::Tensor&, To...),
    const at::Tensor& from,
    at::Tensor& to,
    const From&... parameters) {
  function(from, to, static_cast<To>(parameters)...);
}

/// Implements a stub for the device, as a part of `Operator`. `function` is
/// PyTorch's function, which calls the same stub for the CPU. It first checks
/// the zero points per channel: PyTorch cannot read them on a device, and
/// leaves the check to the backend.
// [docs: quantize]
template <typename Operator, auto function, typename... Parameters>
class QuantizerCall final : public Call {
 public:
  QuantizerCall(
      const at::Tensor& from,
      at::Tensor& to,
      const Parameters&... parameters)
      : Call(
            TypedCall<Operator>::handle(),
            TypedCall<Operator>::schema_info(),
            from.device().index(),
            DispatchPath::kPart),
        from_(from),
        to_(to),
        parameters_(parameters...) {
    place = Place::kInTurn;
    may_be_sent = false; // a function of PyTorch, not an operator
  }

  void alias() override {
    const auto to_cpu = [&](auto& parameter) {
      if constexpr (std::is_same_v<decltype(parameter), at::Tensor&>) {
        if (parameter.device() != from_.device()) {
          throw_two_devices(device(), parameter);
        }
        parameter = aliases().alias(std::move(parameter), /*written=*/false);
      }
    };
    std::apply([&](auto&... each) { (to_cpu(each), ...); }, parameters_);
    cpu_from_ = &aliases().alias(from_, /*written=*/false);
    cpu_to_ = &aliases().alias(to_, /*written=*/true);
  }
  void run() override {
    std::apply(
        [&](const auto&... each) {
          convert_and_call(function, *cpu_from_, *cpu_to_, each...);
        },
        parameters_);
  }

 private:
  const at::Tensor& from_;
  at::Tensor& to_;
  std::tuple<std::decay_t<Parameters>...> parameters_;
  const at::Tensor* cpu_from_ = nullptr;
  at::Tensor* cpu_to_ = nullptr;
};

template <typename Operator, auto function, typename... Parameters>
void run_stub(
    const at::Tensor& from,
    at::Tensor& to,
    Parameters... parameters) {
  QuantizerCall<Operator, function, Parameters...> call(
      from, to, parameters...);
  submit(call);
}
// [docs: end]

void count(const c10::OperatorHandle& op) {
  if (counts_paths()) {
    count_path(op.operator_name(), DispatchPath::kStub);
  }
}

/// Calls PyTorch's function for an operator, which allocates on the current
/// device.
template <typename Operator, auto function, typename... Args>
at::Tensor run_on_device(const at::Tensor& self, Args... args) {
  if (at::globalContext().qEngine() == at::QEngine::QNNPACK ||
      !kernels_reach_memory()) {
    // PyTorch would allocate host memory for the result, or fill it here.
    return TypedKernel<Operator>::run(self, args...);
  }
  count(TypedCall<Operator>::handle());
  const CurrentDevice scope(self.device().index());
  return function(self, args...);
}

at::Tensor dequantize(const at::Tensor& self) {
  if (!kernels_reach_memory()) {
    torch::jit::Stack stack{self};
    run_boxed(
        TypedCall<at::_ops::dequantize_self>::handle(),
        &stack,
        TypedCall<at::_ops::dequantize_self>::handle(),
        c10::DispatchKey::QuantizedCPU);
    return stack.front().toTensor();
  }
  count(TypedCall<at::_ops::dequantize_self>::handle());
  return at::native::dequantize_quantized(self);
}

} // namespace

// [docs: quantize-registration]
OPENREG_MECHANISM(
    affine_quantizer,
    "DispatchStub: quantize_tensor_per_tensor_affine_stub and its siblings",
    "quantize_* and dequantize run the boxed kernel") {
  namespace native = at::native;
  static auto dense = OPENREG_LIBRARY_IMPL(aten, kDenseKey);
  dense.impl(
      "quantize_per_tensor",
      TORCH_FN((run_on_device<
                at::_ops::quantize_per_tensor,
                &native::quantize_per_tensor,
                double,
                int64_t,
                at::ScalarType>)));
  dense.impl(
      "quantize_per_tensor.tensor_qparams",
      TORCH_FN((run_on_device<
                at::_ops::quantize_per_tensor_tensor_qparams,
                &native::quantize_per_tensor_tensor_qparams,
                const at::Tensor&,
                const at::Tensor&,
                at::ScalarType>)));
  dense.impl(
      "quantize_per_channel",
      TORCH_FN((run_on_device<
                at::_ops::quantize_per_channel,
                &native::quantize_per_channel,
                const at::Tensor&,
                const at::Tensor&,
                int64_t,
                at::ScalarType>)));
  static auto quantized = OPENREG_LIBRARY_IMPL(aten, kQuantizedKey);
  quantized.impl("dequantize.self", TORCH_FN(dequantize));

  using PerTensor = at::_ops::quantize_per_tensor;
  using PerChannel = at::_ops::quantize_per_channel;
  using Dequantize = at::_ops::dequantize_self;
  set_stub(
      native::quantize_tensor_per_tensor_affine_stub,
      &run_stub<PerTensor, &native::quantize_tensor_per_tensor_affine>);
  set_stub(
      native::quantize_tensor_per_tensor_affine_sub_byte_stub,
      &run_stub<PerTensor, &native::quantize_tensor_per_tensor_affine>);
  set_stub(
      native::quantize_tensor_per_channel_affine_stub,
      &run_stub<PerChannel, &native::quantize_tensor_per_channel_affine>);
  set_stub(
      native::quantize_tensor_per_channel_float_qparams_stub,
      &run_stub<
          PerChannel,
          &native::quantize_tensor_per_channel_float_qparams>);
  set_stub(
      native::dequantize_tensor_per_tensor_affine_stub,
      &run_stub<Dequantize, &native::dequantize_tensor_per_tensor_affine>);
  set_stub(
      native::dequantize_tensor_per_tensor_affine_sub_byte_stub,
      &run_stub<Dequantize, &native::dequantize_tensor_per_tensor_affine>);
  set_stub(
      native::dequantize_tensor_per_channel_affine_stub,
      &run_stub<Dequantize, &native::dequantize_tensor_per_channel_affine>);
  set_stub(
      native::dequantize_tensor_per_channel_float_qparams_stub,
      &run_stub<
          Dequantize,
          &native::dequantize_tensor_per_channel_float_qparams>);
}
// [docs: end]

} // namespace openreg::aten
