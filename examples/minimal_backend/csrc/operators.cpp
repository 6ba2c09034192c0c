// SPDX-License-Identifier: BSD-3-Clause
// Operators that neither a composite kernel nor the fallback can provide.
#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_local_scalar_dense.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/full.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include "runtime.h"

namespace torch_minimal {
namespace {

// [docs: empty]
constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

c10::Device checked(std::optional<c10::Device> device, std::optional<c10::Layout> layout,
                    std::optional<bool> pin_memory) {
  TORCH_CHECK(layout.value_or(c10::kStrided) == c10::kStrided,
              "only strided tensors are supported");
  TORCH_CHECK(!pin_memory.value_or(false), "only dense CPU tensors can be pinned");
  return device.value_or(c10::Device(c10::kPrivateUse1));
}

at::Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> dtype,
                 std::optional<c10::Layout> layout, std::optional<c10::Device> device,
                 std::optional<bool> pin_memory, std::optional<c10::MemoryFormat> format) {
  const c10::DeviceGuard guard(checked(device, layout, pin_memory));
  return at::detail::empty_generic(size, c10::GetAllocator(c10::kPrivateUse1), kKeys,
                                   c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride,
                         std::optional<at::ScalarType> dtype, std::optional<c10::Layout> layout,
                         std::optional<c10::Device> device, std::optional<bool> pin_memory) {
  const c10::DeviceGuard guard(checked(device, layout, pin_memory));
  return at::detail::empty_strided_generic(size, stride, c10::GetAllocator(c10::kPrivateUse1),
                                           kKeys, c10::dtype_or_default(dtype));
}
// [docs: end]

// [docs: set]
void grow(const at::Tensor& self) {
  const size_t needed = at::detail::computeStorageNbytes(
      self.sizes(), self.strides(), self.element_size(), self.storage_offset());
  if (self.numel() > 0 && needed > self.storage().nbytes()) resize_storage(self.storage(), needed);
}

const at::Tensor& resize_(const at::Tensor& self, at::IntArrayRef size,
                          std::optional<at::MemoryFormat> format) {
  if (self.sizes() == size && !format) return self; // keeps its strides
  self.unsafeGetTensorImpl()->set_sizes_contiguous(size);
  if (format) self.unsafeGetTensorImpl()->empty_tensor_restride(*format);
  grow(self);
  return self;
}

at::Tensor& set_storage_offset(at::Tensor& self, c10::Storage source, int64_t offset,
                               at::IntArrayRef size, at::IntArrayRef stride) {
  at::native::checkSetStorage(self, source, offset, size, stride);
  c10::TensorImpl* impl = self.unsafeGetTensorImpl();
  impl->set_sizes_contiguous(size);
  if (stride.data() != nullptr) impl->set_sizes_and_strides(size, stride);
  impl->set_storage_offset(offset);
  grow(self);
  return self;
}

at::Tensor& set_storage(at::Tensor& self, c10::Storage source) {
  const auto count = static_cast<int64_t>(source.nbytes() / self.element_size());
  return set_storage_offset(self, std::move(source), 0, {count}, {});
}
// [docs: end]

// [docs: values]
at::Tensor& fill(at::Tensor& self, const at::Scalar& value) {
  at::Tensor once = self; // an expanded dimension is one element in memory
  for (int64_t dim = 0; dim < once.dim(); ++dim) {
    if (once.stride(dim) == 0 && once.size(dim) > 1) once = once.narrow(dim, 0, 1);
  }
  once.copy_(at::full(once.sizes(), value, self.options().device(at::kCPU)));
  return self;
}
at::Tensor& zero(at::Tensor& self) {
  return self.fill_(0);
}

at::Scalar item(const at::Tensor& self) {
  return at::_local_scalar_dense(self.cpu());
}

// Nothing to record: the allocator frees a block only after all work on its device.
void record_stream(at::Tensor&, c10::Stream) {}
// [docs: end]

// [docs: shallow-copy]
bool is_dense(const at::Tensor& tensor) {
  return tensor.key_set().has(c10::DispatchKey::CPU) ||
         tensor.key_set().has(c10::DispatchKey::PrivateUse1);
}

/// Whether `self.data = other` is allowed. If not, Module.to creates new parameters:
/// tied weights are no longer tied, and optimizers keep the old parameters.
bool takes_data_of(const at::Tensor& self, const at::Tensor& other) {
  return is_dense(self) && is_dense(other);
}

// PyTorch's kernel is composite, so it has to be replaced on both keys.
TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) {
  m.impl("_has_compatible_shallow_copy_type", takes_data_of);
}
// [docs: end]

// [docs: operators-registration]
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
  m.impl("resize_", resize_);
  m.impl("set_.source_Storage_storage_offset", set_storage_offset);
  m.impl("set_.source_Storage", set_storage);
  m.impl("set_.source_Tensor", at::native::set_tensor_);
  m.impl("fill_.Scalar", fill);
  m.impl("zero_", zero);
  m.impl("_local_scalar_dense", item);
  m.impl("record_stream", record_stream);
  m.impl("_has_compatible_shallow_copy_type", takes_data_of);
  // Views only change metadata, so PyTorch's functions work on any device.
  m.impl("as_strided", at::native::as_strided_tensorimpl);
  m.impl("view", at::native::view);
  m.impl("_reshape_alias", at::native::_reshape_alias);
  m.impl("unfold", at::native::unfold);
  m.impl("view_as_real", at::native::view_as_real);
  m.impl("view_as_complex", at::native::view_as_complex);
}
// [docs: end]

} // namespace
} // namespace torch_minimal
