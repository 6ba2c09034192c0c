// SPDX-License-Identifier: BSD-3-Clause
// Named flags of a tensor, which torch.save keeps.
#pragma once

#include "base/export.h"

#include <ATen/core/Tensor.h>

#include <string>
#include <unordered_map>

namespace openreg::aten {

/// PyTorch's file format stores one bool per name, and nothing else.
using TensorFlags = std::unordered_map<std::string, bool>;

/// Returns the flags of `tensor`, empty if none were set.
OPENREG_ATEN_API TensorFlags tensor_flags(const at::Tensor& tensor);

/// Replaces the flags of `tensor`.
OPENREG_ATEN_API void set_tensor_flags(
    const at::Tensor& tensor,
    TensorFlags flags);

} // namespace openreg::aten
