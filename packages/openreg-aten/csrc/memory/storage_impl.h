// SPDX-License-Identifier: BSD-3-Clause
// Storages of the device, and the name that each can have.
#pragma once

#include "base/export.h"

#include <ATen/core/Tensor.h>

#include <string>

namespace openreg::aten {

/// A storage of the device over memory that it then owns. It can be resized.
c10::Storage make_storage(size_t bytes, c10::DataPtr memory);

/// The name of the storage of a tensor; empty if nobody has set one.
OPENREG_ATEN_API std::string storage_name(const at::Tensor& tensor);

/// Sets the name of the storage of a tensor. A storage that a CPU kernel made
/// is PyTorch's own and has no room for one: the tensor gets another over the
/// same memory, unless somebody else holds the storage. Throws c10::Error.
OPENREG_ATEN_API void set_storage_name(
    const at::Tensor& tensor,
    std::string name);

} // namespace openreg::aten
