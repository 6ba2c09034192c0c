// SPDX-License-Identifier: BSD-3-Clause
// Checks that all elements of a tensor lie in its storage.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/TensorImpl.h>

#include <cstddef>
#include <cstdint>

namespace openreg::aten {

/// The slow path of lies_in_storage(): for tensors with gaps, with elements
/// that share memory, or out of bounds.
bool lies_in_storage_by_strides(const c10::TensorImpl& tensor);

/// Whether all elements of a tensor lie in its storage.
inline bool lies_in_storage(const c10::TensorImpl& tensor) {
  const auto elements =
      static_cast<size_t>(tensor.storage_offset() + tensor.numel());
  return C10_LIKELY(
             tensor.is_non_overlapping_and_dense() &&
             elements * tensor.itemsize() <= tensor.storage().nbytes()) ||
      lies_in_storage_by_strides(tensor);
}

} // namespace openreg::aten

namespace openreg::aten::codec {

/// Whether all elements lie in a storage of `nbytes` bytes, and their number
/// does not overflow.
bool lies_in(
    at::IntArrayRef sizes,
    at::IntArrayRef strides,
    std::int64_t offset,
    std::size_t item,
    std::size_t nbytes);
/// Throws Malformed unless lies_in() returns true.
void check_extent(
    at::IntArrayRef sizes,
    at::IntArrayRef strides,
    std::int64_t offset,
    std::size_t item,
    std::size_t nbytes);

} // namespace openreg::aten::codec
