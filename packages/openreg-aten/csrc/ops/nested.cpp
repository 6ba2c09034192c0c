// SPDX-License-Identifier: BSD-3-Clause
// Strided nested tensors. Their sizes are CPU tensors on every device, so
// operators that read the sizes, or create views from them, need no kernel.
#include "base/keys.h"
#include "base/mechanism.h"
#include "ops/over_composites.h"

#include <ATen/ops/_nested_tensor_size_native.h>
#include <ATen/ops/_nested_tensor_storage_offsets_native.h>
#include <ATen/ops/_nested_tensor_strides_native.h>
#include <ATen/ops/_nested_view_from_buffer_native.h>
#include <ATen/ops/_to_copy_native.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/empty_like_native.h>

namespace openreg::aten {

OPENREG_MECHANISM(
    nested,
    "TORCH_LIBRARY_IMPL(_, NestedTensorPrivateUse1): fallback",
    "nested tensors with strides can be created but not used") {
  using c10::DispatchKey;
  static auto fallback = OPENREG_LIBRARY_IMPL(_, kNestedKey);
  fallback.fallback(
      torch::CppFunction::makeFromBoxedFunction<
          &run_cpu_kernel<DispatchKey::NestedTensorCPU>>());
  static auto library = OPENREG_LIBRARY_IMPL(aten, kNestedKey);
  // These may name a device other than that of the tensor.
  library.impl("empty_like", TORCH_FN(at::native::empty_like_nested));
  library.impl("_to_copy", TORCH_FN(at::native::_to_copy_nested));
  library.impl("copy_", TORCH_FN(at::native::copy_nested_));
  library.impl(
      "_nested_tensor_size", TORCH_FN(at::native::_nested_tensor_size));
  library.impl(
      "_nested_tensor_strides", TORCH_FN(at::native::_nested_tensor_strides));
  library.impl(
      "_nested_tensor_storage_offsets",
      TORCH_FN(at::native::_nested_tensor_storage_offsets));
  register_over_composites<DispatchKey::NestedTensorCPU>(library);
  static auto dense = OPENREG_LIBRARY_IMPL(aten, kDenseKey);
  dense.impl(
      "_nested_view_from_buffer",
      TORCH_FN(at::native::_nested_view_from_buffer));
}

} // namespace openreg::aten
