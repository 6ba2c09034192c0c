// SPDX-License-Identifier: BSD-3-Clause
// Converts quantizers between the device and its kernels. Tensors that share a
// quantizer also share its copy, and a copy that a kernel returns is converted
// back to the original.
#include "alias/quantizer.h"

#include "alias/cpu_aliases.h"

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

at::QuantizerPtr CpuAliases::alias_quantizer(
    const at::QuantizerPtr& quantizer) {
  for (const SharedQuantizer& shared : quantizers_) {
    if (shared.device == quantizer) {
      return shared.alias;
    }
  }
  at::QuantizerPtr made =
      convert_quantizer(quantizer, [&](const at::Tensor& component) {
        return alias(at::Tensor(component), /*written=*/false);
      });
  if (made != quantizer) {
    quantizers_.push_back({quantizer, made});
  }
  return made;
}

at::QuantizerPtr CpuAliases::adopt_quantizer(
    const at::QuantizerPtr& quantizer) {
  for (const SharedQuantizer& shared : quantizers_) {
    if (shared.alias == quantizer) {
      return shared.device;
    }
  }
  at::QuantizerPtr adopted = convert_quantizer(
      quantizer, [&](const at::Tensor& component) { return adopt(component); });
  if (adopted != quantizer) {
    quantizers_.push_back({adopted, quantizer});
  }
  return adopted;
}

} // namespace openreg::aten
