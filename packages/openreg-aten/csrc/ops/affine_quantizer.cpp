// SPDX-License-Identifier: BSD-3-Clause
// Quantization and its inverse, through the functions that PyTorch's own
// operators ask the device for. They make the result and know its quantizer.
#include "device/device.h"
#include "kernel/typed.h"
#include "mechanism.h"

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

/// What a device does for a stub. `function` is PyTorch's, which calls the same
/// stub for the CPU once more, and first checks the zero points of channels:
/// PyTorch leaves that to a device, as it cannot read them.
// [docs: quantize]
template <auto function, typename... Parameters>
void run_on_aliases(
    const at::Tensor& from,
    at::Tensor& to,
    Parameters... parameters) {
  const c10::DeviceIndex device = from.device().index();
  CpuAliases aliases(device);
  const auto to_cpu = [&](const auto& parameter) -> decltype(auto) {
    if constexpr (std::is_same_v<decltype(parameter), const at::Tensor&>) {
      if (parameter.device() != from.device()) {
        throw_two_devices(device, parameter);
      }
      return aliases.alias(parameter, /*written=*/false);
    } else {
      return parameter;
    }
  };
  const at::Tensor& source = to_cpu(from);
  at::Tensor& result = aliases.alias(to, /*written=*/true);
  run_on_current_stream(device, [&] {
    const KernelScope scope(device);
    function(source, result, to_cpu(parameters)...);
  });
}
// [docs: end]

/// PyTorch's function for an operator, which allocates on the current device.
template <typename Operator, auto function, typename... Args>
at::Tensor ask_device(const at::Tensor& self, Args... args) {
  if (at::globalContext().qEngine() == at::QEngine::QNNPACK) {
    // PyTorch would take the result's memory from the host.
    return TypedKernel<Operator>::run(self, args...);
  }
  count_call<Operator>(DispatchPath::kStub);
  const CurrentDevice scope(self.device().index());
  return function(self, args...);
}

at::Tensor dequantize(const at::Tensor& self) {
  count_call<at::_ops::dequantize_self>(DispatchPath::kStub);
  return at::native::dequantize_quantized(self);
}

} // namespace

// [docs: quantize-registration]
OPENREG_MECHANISM(
    affine_quantizer,
    "DispatchStub: quantize_tensor_per_tensor_affine_stub and its siblings",
    "quantize_* and dequantize take the boxed kernel, not the device's "
    "function") {
  namespace native = at::native;
  static auto dense = MAKE_TORCH_LIBRARY_IMPL(aten, PrivateUse1);
  dense.impl(
      "quantize_per_tensor",
      TORCH_FN((ask_device<
                at::_ops::quantize_per_tensor,
                &native::quantize_per_tensor,
                double,
                int64_t,
                at::ScalarType>)));
  dense.impl(
      "quantize_per_tensor.tensor_qparams",
      TORCH_FN((ask_device<
                at::_ops::quantize_per_tensor_tensor_qparams,
                &native::quantize_per_tensor_tensor_qparams,
                const at::Tensor&,
                const at::Tensor&,
                at::ScalarType>)));
  dense.impl(
      "quantize_per_channel",
      TORCH_FN((ask_device<
                at::_ops::quantize_per_channel,
                &native::quantize_per_channel,
                const at::Tensor&,
                const at::Tensor&,
                int64_t,
                at::ScalarType>)));
  static auto quantized = MAKE_TORCH_LIBRARY_IMPL(aten, QuantizedPrivateUse1);
  quantized.impl("dequantize.self", TORCH_FN(dequantize));

  native::quantize_tensor_per_tensor_affine_stub.set_privateuse1_dispatch_ptr(
      &run_on_aliases<&native::quantize_tensor_per_tensor_affine>);
  native::quantize_tensor_per_tensor_affine_sub_byte_stub
      .set_privateuse1_dispatch_ptr(
          &run_on_aliases<&native::quantize_tensor_per_tensor_affine>);
  native::quantize_tensor_per_channel_affine_stub.set_privateuse1_dispatch_ptr(
      &run_on_aliases<&native::quantize_tensor_per_channel_affine>);
  native::quantize_tensor_per_channel_float_qparams_stub
      .set_privateuse1_dispatch_ptr(
          &run_on_aliases<&native::quantize_tensor_per_channel_float_qparams>);
  native::dequantize_tensor_per_tensor_affine_stub.set_privateuse1_dispatch_ptr(
      &run_on_aliases<&native::dequantize_tensor_per_tensor_affine>);
  native::dequantize_tensor_per_tensor_affine_sub_byte_stub
      .set_privateuse1_dispatch_ptr(
          &run_on_aliases<&native::dequantize_tensor_per_tensor_affine>);
  native::dequantize_tensor_per_channel_affine_stub
      .set_privateuse1_dispatch_ptr(
          &run_on_aliases<&native::dequantize_tensor_per_channel_affine>);
  native::dequantize_tensor_per_channel_float_qparams_stub
      .set_privateuse1_dispatch_ptr(
          &run_on_aliases<
              &native::dequantize_tensor_per_channel_float_qparams>);
}
// [docs: end]

} // namespace openreg::aten
