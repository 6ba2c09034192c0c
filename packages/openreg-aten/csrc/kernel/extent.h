// SPDX-License-Identifier: BSD-3-Clause
// Whether tensors lie in their storages. FSDP and offloading free memory with
// untyped_storage().resize_(0) and keep the tensors, whose sizes stay as they
// are. A kernel that got such a tensor would run past the end of the memory.
#pragma once

#include "kernel/operator_info.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <string_view>

namespace openreg::aten {

/// lies_in_storage() of a tensor with gaps, with elements that share memory, or
/// outside of its storage.
bool lies_in_storage_by_strides(const c10::TensorImpl& tensor);

/// Whether the storage of a tensor has all elements of the tensor.
inline bool lies_in_storage(const c10::TensorImpl& tensor) {
  const auto elements =
      static_cast<size_t>(tensor.storage_offset() + tensor.numel());
  return C10_LIKELY(
             tensor.is_non_overlapping_and_dense() &&
             elements * tensor.itemsize() <= tensor.storage().nbytes()) ||
      lies_in_storage_by_strides(tensor);
}

/// Throws c10::AcceleratorError with orErrorIllegalAddress for an argument that
/// does not lie in its storage.
[[noreturn]] void throw_outside_storage(
    const c10::TensorImpl& tensor,
    std::string_view op,
    std::string_view argument);

/// Throws that for the first such argument of an operator.
void check_extents(
    const c10::OperatorHandle& op,
    const OperatorInfo& info,
    at::ArrayRef<c10::IValue> arguments);

} // namespace openreg::aten
