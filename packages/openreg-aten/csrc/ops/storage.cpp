// SPDX-License-Identifier: BSD-3-Clause
// Operators that replace or resize the storage of a tensor.
#include "base/keys.h"
#include "base/mechanism.h"
#include "memory/allocator.h"
#include "memory/storage_impl.h"

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/native/ResizeCommon.h>
#include <ATen/ops/set_native.h>
#include <torch/library.h>

namespace openreg::aten {
namespace {

at::Tensor& set_storage_offset(
    at::Tensor& self,
    c10::Storage source,
    int64_t storage_offset,
    at::IntArrayRef size,
    at::IntArrayRef stride) {
  TORCH_CHECK(
      source.device() == self.device() || self.storage().is_alias_of(source),
      "Attempted to set the storage of a tensor on device \"",
      self.device(),
      "\" to a storage on different device \"",
      source.device(),
      "\".  This is no longer allowed; the devices must match.");
  TORCH_CHECK(
      size.size() == stride.size() || stride.data() == nullptr,
      "unequal size length (",
      size.size(),
      ") and stride length (",
      stride.size(),
      ")");
  for (const int64_t each : stride) {
    TORCH_CHECK(each >= 0, "Negative strides are not supported, got ", stride);
  }
  TORCH_CHECK(
      storage_offset >= 0, "Tensor: invalid storage offset ", storage_offset);
  c10::TensorImpl* impl = self.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(source);
  if (stride.data() != nullptr) {
    impl->set_sizes_and_strides(size, stride, storage_offset);
  } else {
    impl->set_sizes_contiguous(size);
    impl->set_storage_offset(storage_offset);
  }
  const size_t needed = at::detail::computeStorageNbytes(
      impl->sizes(),
      impl->strides(),
      impl->dtype().itemsize(),
      static_cast<size_t>(storage_offset));
  if (self.numel() > 0 && needed > source.nbytes()) {
    resize_storage(source, needed);
  }
  return self;
}

at::Tensor& set_empty(at::Tensor& self) {
  c10::Storage storage =
      make_storage(0, own_block(self.device().index(), nullptr));
  return set_storage_offset(self, std::move(storage), 0, {0}, {});
}

at::Tensor& set_whole_storage(at::Tensor& self, c10::Storage source) {
  const auto count =
      static_cast<int64_t>(source.nbytes() / self.dtype().itemsize());
  return set_storage_offset(self, std::move(source), 0, {count}, {});
}

/// Needs no kernel, and does not wait. As on the CPU, new elements are
/// uninitialized, unless deterministic algorithms are enabled.
const at::Tensor& resize_(
    const at::Tensor& self,
    at::IntArrayRef size,
    std::optional<at::MemoryFormat> format) {
  c10::TensorImpl* impl = self.unsafeGetTensorImpl();
  const size_t before = self.storage().nbytes();
  const size_t needed = at::detail::computeStorageNbytesContiguous(
      size,
      impl->dtype().itemsize(),
      static_cast<size_t>(impl->storage_offset()));
  if (self.sizes() != size) {
    if (needed > before && c10::multiply_integers(size) > 0) {
      resize_storage(self.storage(), needed);
    }
    impl->set_sizes_contiguous(size);
  }
  if (format) {
    TORCH_CHECK(
        *format != at::MemoryFormat::Preserve,
        "Unsupported memory format",
        *format);
    impl->empty_tensor_restride(*format);
  }
  if (C10_UNLIKELY(
          at::globalContext().deterministicAlgorithms() &&
          at::globalContext().deterministicFillUninitializedMemory())) {
    at::native::fill_resize_deterministic_(self, static_cast<int64_t>(before));
  }
  return self;
}

void record_stream(at::Tensor& self, c10::Stream stream) {
  device_allocator().recordStream(self.storage().data_ptr(), stream);
}

} // namespace

OPENREG_MECHANISM(
    storage,
    "TORCH_LIBRARY_IMPL(aten, PrivateUse1): set_",
    "no set_, torch.load or record_stream") {
  static auto library = OPENREG_LIBRARY_IMPL(aten, kDenseKey);
  library.impl(
      "set_.source_Storage_storage_offset", TORCH_FN(set_storage_offset));
  library.impl("set_.source_Storage", TORCH_FN(set_whole_storage));
  library.impl("set_.source_Tensor", TORCH_FN(at::native::set_tensor_));
  library.impl("set_", TORCH_FN(set_empty));
  library.impl("resize_", TORCH_FN(resize_));
  library.impl("record_stream", TORCH_FN(record_stream));
  static auto quantized = OPENREG_LIBRARY_IMPL(aten, kQuantizedKey);
  quantized.impl(
      "set_.source_Storage_storage_offset", TORCH_FN(set_storage_offset));
}

} // namespace openreg::aten
