// SPDX-License-Identifier: BSD-3-Clause
// Creates tensors as at::detail::empty_generic and empty_strided_generic do.
// These functions always create plain PyTorch storages.
#include "memory/tensor.h"

#include "base/keys.h"
#include "base/torch_version.h"
#include "memory/allocator.h"
#include "memory/storage_impl.h"

#include <ATen/EmptyTensor.h>

namespace openreg::aten {
namespace {

template <c10::ScalarType kDtype>
bool warn_once() {
  TORCH_WARN_ONCE(
      c10::toString(kDtype),
      " support is experimental and many operators don't support it yet.");
  return true;
}

template <c10::ScalarType... kDtypes>
void warn_if_one_of(c10::ScalarType dtype) {
  ((C10_UNLIKELY(dtype == kDtypes) && warn_once<kDtypes>()) || ...);
}

at::Tensor
over_new_memory(c10::DeviceIndex device, size_t bytes, c10::ScalarType dtype) {
  warn_if_one_of<OPENREG_DTYPES_SINCE_2_14 c10::ScalarType::ComplexHalf>(dtype);
  return at::detail::make_tensor<c10::TensorImpl>(
      make_storage(bytes, own_block(device, allocate_block(device, bytes))),
      kDenseKeySet,
      c10::scalarTypeToTypeMeta(dtype));
}

} // namespace

at::Tensor make_tensor(
    c10::DeviceIndex device,
    at::IntArrayRef sizes,
    c10::ScalarType dtype,
    std::optional<c10::MemoryFormat> format) {
  at::detail::check_size_nonnegative(sizes);
  at::Tensor made = over_new_memory(
      device,
      at::detail::computeStorageNbytesContiguous(
          sizes, c10::elementSize(dtype)),
      dtype);
  c10::TensorImpl& impl = *made.unsafeGetTensorImpl();
  if (sizes.size() != 1 || sizes[0] != 0) { // the default of a new tensor
    impl.set_sizes_contiguous(sizes);
  }
  if (format && *format != c10::MemoryFormat::Contiguous) {
    impl.empty_tensor_restride(*format);
  }
  return made;
}

at::Tensor make_strided_tensor(
    c10::DeviceIndex device,
    at::IntArrayRef sizes,
    at::IntArrayRef strides,
    c10::ScalarType dtype) {
  at::detail::check_size_nonnegative(sizes);
  at::Tensor made = over_new_memory(
      device,
      at::detail::computeStorageNbytes(sizes, strides, c10::elementSize(dtype)),
      dtype);
  made.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return made;
}

} // namespace openreg::aten
