// SPDX-License-Identifier: BSD-3-Clause
// Named flags of a tensor, which torch.save keeps.
#pragma once

#include "base/export.h"

#include <ATen/core/Tensor.h>

#include <string>
#include <unordered_map>

namespace openreg::aten {

/// PyTorch's files have room for names with a bool each, and for no more.
using TensorFlags = std::unordered_map<std::string, bool>;

/// The flags of `tensor`; none if nobody has set any.
OPENREG_ATEN_API TensorFlags tensor_flags(const at::Tensor& tensor);

/// Replaces the flags of `tensor`.
OPENREG_ATEN_API void set_tensor_flags(
    const at::Tensor& tensor,
    TensorFlags flags);

} // namespace openreg::aten
