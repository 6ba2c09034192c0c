// SPDX-License-Identifier: BSD-3-Clause
// Checks extents of tensors with arbitrary strides.
#include "codec/extent.h"

#include "codec/wire.h"

#include <c10/core/ScalarType.h>

namespace openreg::aten {
namespace {

/// The maximum number of elements per byte of a dtype, 1 for most dtypes.
size_t elements_of_byte(c10::ScalarType dtype) {
  switch (dtype) {
    case c10::ScalarType::QUInt4x2:
      return 2;
    case c10::ScalarType::QUInt2x4:
      return 4;
    default:
      return 1;
  }
}

} // namespace

bool lies_in_storage_by_strides(const c10::TensorImpl& tensor) {
  const auto dtype = c10::typeMetaToScalarType(tensor.dtype());
  return codec::lies_in(
      tensor.sizes(),
      tensor.strides(),
      tensor.storage_offset(),
      tensor.itemsize(),
      tensor.storage().nbytes() * elements_of_byte(dtype));
}

} // namespace openreg::aten

namespace openreg::aten::codec {

bool lies_in(
    at::IntArrayRef sizes,
    at::IntArrayRef strides,
    std::int64_t offset,
    std::size_t item,
    std::size_t nbytes) {
  bool empty = false;
  std::int64_t elements = 1;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0 || strides[i] < 0 ||
        (sizes[i] != 0 &&
         __builtin_mul_overflow(elements, sizes[i], &elements))) {
      return false;
    }
    empty = empty || sizes[i] == 0;
  }
  if (offset < 0 || empty) {
    return offset >= 0;
  }
  std::int64_t last = offset;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::int64_t extent = 0;
    if (__builtin_mul_overflow(sizes[i] - 1, strides[i], &extent) ||
        __builtin_add_overflow(last, extent, &last)) {
      return false;
    }
  }
  std::uint64_t end = 0;
  return !__builtin_mul_overflow(
             static_cast<std::uint64_t>(last) + 1, item, &end) &&
      end <= nbytes;
}

void check_extent(
    at::IntArrayRef sizes,
    at::IntArrayRef strides,
    std::int64_t offset,
    std::size_t item,
    std::size_t nbytes) {
  if (!lies_in(sizes, strides, offset, item, nbytes)) {
    throw Malformed("a tensor extends past the end of its storage");
  }
}

} // namespace openreg::aten::codec
