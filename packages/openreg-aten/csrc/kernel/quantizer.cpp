// SPDX-License-Identifier: BSD-3-Clause
// Quantizers between the device and its kernels. Tensors that share one share
// one on the other side, and a quantizer that comes back is the one that went.
#include "kernel/quantizer.h"

#include "kernel/device_views.h"

namespace openreg::aten {

at::QuantizerPtr convert_quantizer(
    const at::QuantizerPtr& quantizer,
    const std::function<at::Tensor(const at::Tensor&)>& convert) {
  const auto* channels =
      dynamic_cast<const at::PerChannelAffineQuantizer*>(quantizer.get());
  if (channels == nullptr) {
    return quantizer;
  }
  const at::ScalarType type = channels->scalar_type();
  at::Tensor scales = convert(channels->scales());
  at::Tensor zero_points = convert(channels->zero_points());
  if (channels->qscheme() == at::kPerChannelAffineFloatQParams) {
    return c10::make_intrusive<at::PerChannelAffineFloatQParamsQuantizer>(
        type, std::move(scales), std::move(zero_points), channels->axis());
  }
  return c10::make_intrusive<at::PerChannelAffineQuantizer>(
      type, std::move(scales), std::move(zero_points), channels->axis());
}

at::QuantizerPtr DeviceViews::present_quantizer(
    const at::QuantizerPtr& quantizer) {
  for (const SharedQuantizer& shared : quantizers_) {
    if (shared.device == quantizer) {
      return shared.view;
    }
  }
  at::QuantizerPtr view =
      convert_quantizer(quantizer, [&](const at::Tensor& member) {
        return present(at::Tensor(member), /*written=*/false);
      });
  if (view != quantizer) {
    quantizers_.push_back({quantizer, view});
  }
  return view;
}

at::QuantizerPtr DeviceViews::take_over_quantizer(
    const at::QuantizerPtr& quantizer) {
  for (const SharedQuantizer& shared : quantizers_) {
    if (shared.view == quantizer) {
      return shared.device;
    }
  }
  at::QuantizerPtr taken = convert_quantizer(
      quantizer, [&](const at::Tensor& member) { return take_over(member); });
  if (taken != quantizer) {
    quantizers_.push_back({taken, quantizer});
  }
  return taken;
}

} // namespace openreg::aten
