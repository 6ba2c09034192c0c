// SPDX-License-Identifier: BSD-3-Clause
// Sparse and nested tensors, which consist of component tensors.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/TensorImpl.h>

#include <vector>

namespace openreg::aten::codec {

template <typename Impl>
const Impl& as(const c10::TensorImpl& tensor) {
  return static_cast<const Impl&>(tensor);
}
template <typename Impl>
Impl& as(c10::TensorImpl& tensor) {
  return static_cast<Impl&>(tensor);
}
template <typename Impl>
Impl& impl_as(const at::Tensor& tensor) {
  return as<Impl>(*tensor.unsafeGetTensorImpl());
}

/// Whether `tensor` has dense component tensors instead of a buffer with
/// strides.
inline bool has_components(const c10::TensorImpl& tensor) {
  constexpr c10::DispatchKeySet kKeys(
      {c10::DispatchKey::Sparse,
       c10::DispatchKey::SparseCsr,
       c10::DispatchKey::NestedTensor});
  return tensor.key_set().has_any(kKeys);
}

/// Whether a kernel accepts a tensor as a component: it must be dense, have
/// data, and its storage must hold all elements contiguously, because kernels
/// read components without checking strides.
bool is_component(const at::Tensor& tensor);

/// Returns the component tensors: indices and values, compressed and plain
/// indices and values, or the buffer.
std::vector<at::Tensor> components_of(const c10::TensorImpl& tensor);

/// Returns an empty sparse COO tensor.
at::Tensor make_sparse(c10::Device device, caffe2::TypeMeta dtype);
/// Returns an empty sparse tensor of a compressed layout.
at::Tensor
make_compressed(c10::Device device, c10::Layout layout, caffe2::TypeMeta dtype);

/// Returns a tensor on `device` like `tensor`, with other component tensors.
/// Both share the sizes of a nested tensor, which the host reads.
at::Tensor compose(
    const c10::TensorImpl& tensor,
    c10::Device device,
    const std::vector<at::Tensor>& components);

/// Assigns a sparse tensor the metadata of `from`, and component tensors.
void assign_components(
    c10::TensorImpl& to,
    const c10::TensorImpl& from,
    const std::vector<at::Tensor>& components);

/// Whether two sparse tensors have the same metadata. Components are not
/// compared.
bool has_metadata_of(const c10::TensorImpl& one, const c10::TensorImpl& other);

} // namespace openreg::aten::codec
