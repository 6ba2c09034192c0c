// SPDX-License-Identifier: BSD-3-Clause
// New tensors over new memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace openreg::aten {

/// An uninitialized tensor on a device. Throws c10::OutOfMemoryError.
at::Tensor make_tensor(
    c10::DeviceIndex device,
    at::IntArrayRef sizes,
    c10::ScalarType dtype,
    std::optional<c10::MemoryFormat> format);
/// The same with given strides.
at::Tensor make_strided_tensor(
    c10::DeviceIndex device,
    at::IntArrayRef sizes,
    at::IntArrayRef strides,
    c10::ScalarType dtype);

} // namespace openreg::aten
