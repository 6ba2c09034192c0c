// SPDX-License-Identifier: BSD-3-Clause
// Creates tensors with new memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace openreg::aten {

/// Returns an uninitialized device tensor. Throws c10::OutOfMemoryError.
at::Tensor make_tensor(
    c10::DeviceIndex device,
    at::IntArrayRef sizes,
    c10::ScalarType dtype,
    std::optional<c10::MemoryFormat> format);
/// Returns an uninitialized device tensor with these strides.
at::Tensor make_strided_tensor(
    c10::DeviceIndex device,
    at::IntArrayRef sizes,
    at::IntArrayRef strides,
    c10::ScalarType dtype);

} // namespace openreg::aten
