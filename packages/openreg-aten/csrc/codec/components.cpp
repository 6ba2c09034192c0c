// SPDX-License-Identifier: BSD-3-Clause
// Splits sparse and nested tensors into component tensors, and composes them.
#include "codec/components.h"

#include "base/keys.h"
#include "codec/extent.h"
#include "device/device.h"

#include <ATen/NestedTensorImpl.h>
#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseTensorImpl.h>
#include <ATen/ops/clone.h>

#include <utility>

namespace openreg::aten::codec {
namespace {

using at::SparseCsrTensorImpl;
using at::SparseTensorImpl;
using at::native::NestedTensorImpl;
using c10::DispatchKey;

c10::DispatchKeySet keys(DispatchKey functionality, c10::Device device) {
  return c10::DispatchKeySet(functionality) |
      c10::DispatchKeySet(
             device.is_cpu() ? c10::BackendComponent::CPUBit : kBackend);
}

/// The host reads the sizes of a nested tensor, so they must outlive the kernel
/// that returned them.
at::Tensor on_host(const at::Tensor& sizes) {
  return sizes.defined() && to_device(sizes.const_data_ptr()) != nullptr
      ? sizes.clone()
      : sizes;
}

} // namespace

at::Tensor make_sparse(c10::Device device, caffe2::TypeMeta dtype) {
  return at::detail::make_tensor<SparseTensorImpl>(
      keys(DispatchKey::Sparse, device), dtype);
}

at::Tensor make_compressed(
    c10::Device device,
    c10::Layout layout,
    caffe2::TypeMeta dtype) {
  return at::detail::make_tensor<SparseCsrTensorImpl>(
      keys(DispatchKey::SparseCsr, device), device, layout, dtype);
}

bool is_component(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.layout() != c10::kStrided ||
      !tensor.has_storage()) {
    return false;
  }
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  const std::int64_t count = impl.numel();
  return !has_components(impl) && !tensor.is_quantized() &&
      !impl._is_zerotensor() &&
      lies_in(
          {count},
          {1},
          impl.storage_offset(),
          impl.itemsize(),
          impl.storage().nbytes());
}

std::vector<at::Tensor> components_of(const c10::TensorImpl& tensor) {
  if (tensor.is_sparse()) {
    const auto& impl = as<SparseTensorImpl>(tensor);
    return {impl.indices(), impl.values()};
  }
  if (tensor.is_nested()) {
    return {as<NestedTensorImpl>(tensor).get_unsafe_storage_as_tensor()};
  }
  const auto& impl = as<SparseCsrTensorImpl>(tensor);
  return {impl.compressed_indices(), impl.plain_indices(), impl.values()};
}

at::Tensor compose(
    const c10::TensorImpl& tensor,
    c10::Device device,
    const std::vector<at::Tensor>& components) {
  if (tensor.is_nested()) {
    const auto& impl = as<NestedTensorImpl>(tensor);
    return at::detail::make_tensor<NestedTensorImpl>(
        components[0],
        on_host(impl.get_nested_sizes()),
        on_host(impl.get_nested_strides()),
        on_host(impl.get_storage_offsets()));
  }
  at::Tensor made = tensor.is_sparse()
      ? make_sparse(device, tensor.dtype())
      : make_compressed(
            device,
            as<SparseCsrTensorImpl>(tensor).layout_impl(),
            tensor.dtype());
  assign_components(*made.unsafeGetTensorImpl(), tensor, components);
  return made;
}

void assign_components(
    c10::TensorImpl& to,
    const c10::TensorImpl& from,
    const std::vector<at::Tensor>& components) {
  if (to.is_sparse()) {
    auto& impl = as<SparseTensorImpl>(to);
    const auto& like = as<SparseTensorImpl>(from);
    impl.raw_resize_(like.sparse_dim(), like.dense_dim(), like.sizes());
    impl.set_indices_and_values_unsafe(components[0], components[1]);
    impl.set_coalesced(like.coalesced());
    return;
  }
  auto& impl = as<SparseCsrTensorImpl>(to);
  impl.set_layout(as<SparseCsrTensorImpl>(from).layout_impl());
  impl.set_member_tensors(
      components[0], components[1], components[2], from.sizes());
}

bool has_metadata_of(const c10::TensorImpl& one, const c10::TensorImpl& other) {
  if (one.sizes() != other.sizes() || one.layout() != other.layout()) {
    return false;
  }
  return !one.is_sparse() ||
      as<SparseTensorImpl>(one).coalesced() ==
      as<SparseTensorImpl>(other).coalesced();
}

} // namespace openreg::aten::codec
