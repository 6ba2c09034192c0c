// SPDX-License-Identifier: BSD-3-Clause
// Device storages, each of which can have a name.
#pragma once

#include "base/export.h"

#include <ATen/core/Tensor.h>

#include <string>

namespace openreg::aten {

/// Returns a resizable device storage that owns `memory`.
c10::Storage make_storage(size_t bytes, c10::DataPtr memory);

/// Returns the name of the storage of a tensor, empty if none was set.
OPENREG_ATEN_API std::string storage_name(const at::Tensor& tensor);

/// Sets the name of the storage of a tensor. A CPU kernel returns plain PyTorch
/// storages, which cannot have a name: the tensor then gets a new storage over
/// the same memory, unless the old one is shared. Throws c10::Error.
OPENREG_ATEN_API void set_storage_name(
    const at::Tensor& tensor,
    std::string name);

} // namespace openreg::aten
