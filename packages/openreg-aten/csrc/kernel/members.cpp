// SPDX-License-Identifier: BSD-3-Clause
// Sparse and nested tensors between the device and its kernels: their members
// go the way of every dense tensor, and are put together on the other side.
#include "kernel/members.h"

#include "device/device.h"
#include "kernel/device_views.h"

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

/// A tensor on `device` like `tensor`, whose members are made by `convert`.
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

at::Tensor& DeviceViews::present_members(
    const at::Tensor& tensor,
    bool written) {
  const auto view_of_members = [&] {
    return rebuild(
        tensor, c10::Device(c10::kCPU), [&](const at::Tensor& member) {
          return present(at::Tensor(member), written);
        });
  };
  for (Presented& presented : composed_) {
    if (presented.device == tensor.unsafeGetTensorImpl()) {
      if (written && !presented.written) {
        view_of_members(); // says of each member that it is written
        presented.written = true;
      }
      return presented.view->tensor;
    }
  }
  auto view = std::make_unique<View>(View{view_of_members(), c10::Storage()});
  composed_.push_back({tensor.unsafeGetTensorImpl(), std::move(view), written});
  return composed_.back().view->tensor;
}

at::Tensor DeviceViews::take_over_members(const at::Tensor& result) {
  const CurrentDevice scope(device_); // where the parts' placeholders are made
  return rebuild(
      result,
      c10::Device(c10::kPrivateUse1, device_),
      [&](const at::Tensor& member) { return take_over(member); });
}

void DeviceViews::finish_members(const Presented& presented) {
  c10::TensorImpl& device = *presented.device;
  const at::Tensor& view = presented.view->tensor;
  if (view.is_nested()) {
    return; // written in place, never given other sizes
  }
  const auto kept = [&](const at::Tensor& mine, const at::Tensor& made) {
    return present(at::Tensor(mine), true).is_same(made);
  };
  if (view.is_sparse()) {
    auto& mine = static_cast<SparseTensorImpl&>(device);
    const auto& made = impl_of<SparseTensorImpl>(view);
    if (!kept(mine.indices(), made.indices()) ||
        !kept(mine.values(), made.values()) || mine.sizes() != made.sizes() ||
        mine.coalesced() != made.coalesced()) {
      assign(mine, made, take_over(made.indices()), take_over(made.values()));
    }
    return;
  }
  auto& mine = static_cast<SparseCsrTensorImpl&>(device);
  const auto& made = impl_of<SparseCsrTensorImpl>(view);
  if (!kept(mine.compressed_indices(), made.compressed_indices()) ||
      !kept(mine.plain_indices(), made.plain_indices()) ||
      !kept(mine.values(), made.values()) || mine.sizes() != made.sizes()) {
    mine.set_layout(made.layout_impl());
    mine.set_member_tensors(
        take_over(made.compressed_indices()),
        take_over(made.plain_indices()),
        take_over(made.values()),
        made.sizes());
  }
}

} // namespace openreg::aten
