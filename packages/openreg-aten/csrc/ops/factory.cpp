// SPDX-License-Identifier: BSD-3-Clause
// empty and empty_strided, which allocate every new device tensor.
#include "base/keys.h"
#include "base/mechanism.h"
#include "device/device.h"
#include "memory/storage_impl.h"
#include "memory/tensor.h"

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/native/TensorFactories.h>
#include <torch/library.h>

namespace openreg::aten {
namespace {

void check_options(
    std::optional<c10::Layout> layout,
    std::optional<bool> pin_memory) {
  TORCH_CHECK(
      layout.value_or(c10::kStrided) == c10::kStrided,
      "Expected layout torch.strided, got ",
      *layout);
  TORCH_CHECK(
      !pin_memory.value_or(false), "Only dense CPU tensors can be pinned");
}

/// Returns the index of the device to allocate on. Throws if it does not exist.
c10::DeviceIndex index_of(std::optional<c10::Device> device) {
  const c10::Device where =
      with_index(device.value_or(c10::Device(kDeviceType)));
  check_device(where.index());
  return where.index();
}

at::Tensor filled_if_deterministic(at::Tensor tensor) {
  const auto& context = at::globalContext();
  if (C10_UNLIKELY(
          context.deterministicAlgorithms() &&
          context.deterministicFillUninitializedMemory())) {
    at::native::fill_empty_deterministic_(tensor);
  }
  return tensor;
}

// [docs: empty]
at::Tensor empty(
    at::IntArrayRef size,
    std::optional<at::ScalarType> dtype,
    std::optional<c10::Layout> layout,
    std::optional<c10::Device> device,
    std::optional<bool> pin_memory,
    std::optional<c10::MemoryFormat> memory_format) {
  check_options(layout, pin_memory);
  const CurrentDevice scope(index_of(device));
  return filled_if_deterministic(make_tensor(
      current_device(), size, c10::dtype_or_default(dtype), memory_format));
}
// [docs: end]

at::Tensor empty_strided(
    at::IntArrayRef size,
    at::IntArrayRef stride,
    std::optional<at::ScalarType> dtype,
    std::optional<c10::Layout> layout,
    std::optional<c10::Device> device,
    std::optional<bool> pin_memory) {
  check_options(layout, pin_memory);
  const CurrentDevice scope(index_of(device));
  return filled_if_deterministic(make_strided_tensor(
      current_device(), size, stride, c10::dtype_or_default(dtype)));
}

/// Zeros without memory, which represent zero derivatives in autograd.
at::Tensor efficient_zero_tensor(
    at::IntArrayRef size,
    std::optional<at::ScalarType> dtype,
    std::optional<c10::Layout> layout,
    std::optional<c10::Device> device,
    std::optional<bool> pin_memory) {
  check_options(layout, pin_memory);
  at::detail::check_size_nonnegative(size);
  const c10::Device where(kDeviceType, index_of(device));
  const auto type = c10::scalarTypeToTypeMeta(c10::dtype_or_default(dtype));
  const size_t bytes =
      at::detail::computeStorageNbytesContiguous(size, type.itemsize());
  at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(
      make_storage(bytes, c10::DataPtr(nullptr, where)),
      c10::DispatchKeySet({kDenseKey, c10::DispatchKey::ZeroTensor}),
      type);
  made.unsafeGetTensorImpl()->set_sizes_contiguous(size);
  return made;
}

} // namespace

// [docs: factory-registration]
OPENREG_MECHANISM(
    factory,
    "TORCH_LIBRARY_IMPL(aten, PrivateUse1): empty",
    "each new tensor is a task on the stream; without fallback, no tensors") {
  static auto library = OPENREG_LIBRARY_IMPL(aten, kDenseKey);
  library.impl("empty.memory_format", TORCH_FN(empty));
  library.impl("empty_strided", TORCH_FN(empty_strided));
  library.impl("_efficientzerotensor", TORCH_FN(efficient_zero_tensor));
}
// [docs: end]

} // namespace openreg::aten
