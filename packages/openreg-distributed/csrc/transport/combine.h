// SPDX-License-Identifier: BSD-3-Clause
// Reduces vectors in host memory.
#pragma once

#include <c10/core/ScalarType.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include <cstddef>
#include <vector>

namespace openreg::distributed {

/// Reduces `inputs`, each of `size` bytes, in order. `result` may be the first
/// or the second input and must not overlap others.
void combine(
    std::byte* result,
    const std::vector<const std::byte*>& inputs,
    size_t size,
    c10::ScalarType type,
    const c10d::ReduceOp& op);

} // namespace openreg::distributed
