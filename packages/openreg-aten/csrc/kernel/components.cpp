// SPDX-License-Identifier: BSD-3-Clause
// Sparse and nested tensors between the device and its kernels: their component
// tensors are aliased and adopted like every dense tensor, and put together on
// the other side.
#include "kernel/components.h"

#include "device/device.h"
#include "kernel/cpu_aliases.h"

#include <ATen/NestedTensorImpl.h>
#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseTensorImpl.h>
#include <ATen/ops/clone.h>

namespace openreg::aten {
namespace {

using at::SparseCsrTensorImpl;
using at::SparseTensorImpl;
using at::native::NestedTensorImpl;
using c10::DispatchKey;

template <typename Impl>
Impl& impl_of(const at::Tensor& tensor) {
  return static_cast<Impl&>(*tensor.unsafeGetTensorImpl());
}

c10::DispatchKeySet keys(DispatchKey functionality, c10::Device device) {
  return c10::DispatchKeySet(functionality) |
      c10::DispatchKeySet(
             device.is_cpu() ? c10::BackendComponent::CPUBit
                             : c10::BackendComponent::PrivateUse1Bit);
}

void assign(
    SparseTensorImpl& to,
    const SparseTensorImpl& from,
    const at::Tensor& indices,
    const at::Tensor& values) {
  to.raw_resize_(from.sparse_dim(), from.dense_dim(), from.sizes());
  to.set_indices_and_values_unsafe(indices, values);
  to.set_coalesced(from.coalesced());
}

/// The sizes of a nested tensor are read by the host, and must outlive the
/// kernel that made them.
at::Tensor on_host(const at::Tensor& sizes) {
  return sizes.defined() && to_device(sizes.const_data_ptr()) != nullptr
      ? sizes.clone()
      : sizes;
}

/// A tensor on `device` like `tensor`, whose component tensors are made by
/// `convert`.
template <typename Convert>
at::Tensor
rebuild(const at::Tensor& tensor, c10::Device device, Convert convert) {
  if (tensor.is_sparse()) {
    const auto& impl = impl_of<SparseTensorImpl>(tensor);
    at::Tensor made = at::detail::make_tensor<SparseTensorImpl>(
        keys(DispatchKey::Sparse, device), impl.dtype());
    assign(
        impl_of<SparseTensorImpl>(made),
        impl,
        convert(impl.indices()),
        convert(impl.values()));
    return made;
  }
  if (tensor.is_nested()) {
    const auto& impl = impl_of<NestedTensorImpl>(tensor);
    return at::detail::make_tensor<NestedTensorImpl>(
        convert(impl.get_unsafe_storage_as_tensor()),
        on_host(impl.get_nested_sizes()),
        on_host(impl.get_nested_strides()),
        on_host(impl.get_storage_offsets()));
  }
  const auto& impl = impl_of<SparseCsrTensorImpl>(tensor);
  at::Tensor made = at::detail::make_tensor<SparseCsrTensorImpl>(
      keys(DispatchKey::SparseCsr, device),
      device,
      impl.layout_impl(),
      impl.dtype());
  impl_of<SparseCsrTensorImpl>(made).set_member_tensors(
      convert(impl.compressed_indices()),
      convert(impl.plain_indices()),
      convert(impl.values()),
      impl.sizes());
  return made;
}

} // namespace

at::Tensor& CpuAliases::alias_components(
    const at::Tensor& tensor,
    bool written) {
  const auto alias_of_components = [&] {
    return rebuild(
        tensor, c10::Device(c10::kCPU), [&](const at::Tensor& component) {
          return alias(at::Tensor(component), written);
        });
  };
  for (Aliased& aliased : composed_) {
    if (aliased.device == tensor.unsafeGetTensorImpl()) {
      if (written && !aliased.written) {
        alias_of_components(); // says of each component that it is written
        aliased.written = true;
      }
      return aliased.alias->tensor;
    }
  }
  auto alias = std::make_unique<CpuAlias>(
      CpuAlias{alias_of_components(), c10::Storage()});
  composed_.push_back(
      {tensor.unsafeGetTensorImpl(), std::move(alias), written});
  return composed_.back().alias->tensor;
}

at::Tensor CpuAliases::adopt_components(const at::Tensor& result) {
  const CurrentDevice scope(device_); // where the parts' placeholders are made
  return rebuild(
      result,
      c10::Device(c10::kPrivateUse1, device_),
      [&](const at::Tensor& component) { return adopt(component); });
}

void CpuAliases::write_back_components(const Aliased& aliased) {
  c10::TensorImpl& device = *aliased.device;
  const at::Tensor& cpu = aliased.alias->tensor;
  if (cpu.is_nested()) {
    return; // written in place, never given other sizes
  }
  const auto kept = [&](const at::Tensor& mine, const at::Tensor& made) {
    return alias(at::Tensor(mine), true).is_same(made);
  };
  if (cpu.is_sparse()) {
    auto& mine = static_cast<SparseTensorImpl&>(device);
    const auto& made = impl_of<SparseTensorImpl>(cpu);
    if (!kept(mine.indices(), made.indices()) ||
        !kept(mine.values(), made.values()) || mine.sizes() != made.sizes() ||
        mine.coalesced() != made.coalesced()) {
      assign(mine, made, adopt(made.indices()), adopt(made.values()));
    }
    return;
  }
  auto& mine = static_cast<SparseCsrTensorImpl&>(device);
  const auto& made = impl_of<SparseCsrTensorImpl>(cpu);
  if (!kept(mine.compressed_indices(), made.compressed_indices()) ||
      !kept(mine.plain_indices(), made.plain_indices()) ||
      !kept(mine.values(), made.values()) || mine.sizes() != made.sizes()) {
    mine.set_layout(made.layout_impl());
    mine.set_member_tensors(
        adopt(made.compressed_indices()),
        adopt(made.plain_indices()),
        adopt(made.values()),
        made.sizes());
  }
}

} // namespace openreg::aten
