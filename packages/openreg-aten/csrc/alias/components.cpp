// SPDX-License-Identifier: BSD-3-Clause
// Aliases and adopts sparse and nested tensors: their component tensors are
// converted as dense tensors, and composed again on the other side.
#include "codec/components.h"

#include "alias/cpu_aliases.h"
#include "base/keys.h"
#include "device/device.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace openreg::aten {
namespace {

/// Converts the component tensors of `tensor`.
template <typename Convert>
std::vector<at::Tensor> convert_components(
    const at::Tensor& tensor,
    const Convert& convert) {
  std::vector<at::Tensor> components =
      codec::components_of(*tensor.unsafeGetTensorImpl());
  for (at::Tensor& component : components) {
    component = convert(std::move(component));
  }
  return components;
}

} // namespace

at::Tensor& CpuAliases::alias_components(
    const at::Tensor& tensor,
    bool written) {
  const auto alias_each = [&] {
    return convert_components(tensor, [&](at::Tensor component) {
      return alias(std::move(component), written);
    });
  };
  for (Aliased& aliased : composed_) {
    if (aliased.device == tensor.unsafeGetTensorImpl()) {
      if (written && !aliased.written) {
        alias_each(); // marks each component as written
        aliased.written = true;
      }
      return aliased.alias->tensor;
    }
  }
  auto alias = std::make_unique<CpuAlias>(CpuAlias{
      codec::compose(
          *tensor.unsafeGetTensorImpl(), c10::Device(c10::kCPU), alias_each()),
      c10::Storage()});
  composed_.push_back(
      {tensor.unsafeGetTensorImpl(), std::move(alias), written});
  return composed_.back().alias->tensor;
}

at::Tensor CpuAliases::adopt_components(const at::Tensor& result) {
  const CurrentDevice scope(device_); // for placeholders of components
  return codec::compose(
      *result.unsafeGetTensorImpl(),
      c10::Device(kDeviceType, device_),
      convert_components(result, [&](at::Tensor component) {
        return adopt(std::move(component));
      }));
}

void CpuAliases::write_back_components(const Aliased& aliased) {
  const at::Tensor& cpu = aliased.alias->tensor;
  if (cpu.is_nested()) {
    return; // written in place, never resized
  }
  c10::TensorImpl& to = *aliased.device; // holds no reference
  const c10::TensorImpl& from = *cpu.unsafeGetTensorImpl();
  const std::vector<at::Tensor> made = codec::components_of(from);
  std::vector<at::Tensor> mine = codec::components_of(to);
  const bool kept = std::equal(
      mine.begin(),
      mine.end(),
      made.begin(),
      [&](at::Tensor& each, const at::Tensor& other) {
        return alias(std::move(each), true).is_same(other);
      });
  if (!kept || !codec::has_metadata_of(to, from)) {
    codec::assign_components(
        to, from, convert_components(cpu, [&](at::Tensor component) {
          return adopt(std::move(component));
        }));
  }
}

} // namespace openreg::aten
