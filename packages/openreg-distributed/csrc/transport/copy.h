// SPDX-License-Identifier: BSD-3-Clause
// Copies between tensors and shared memory.
#pragma once

#include <cstddef>

namespace openreg::distributed {

/// Copies `size` bytes, which may be 0; the ranges may be equal or overlap.
void copy_bytes(std::byte* to, const std::byte* from, size_t size);

/// Copies a piece of a result of `total` bytes. A result larger than the caches
/// bypasses them: otherwise each write would first read the memory, and evict
/// pieces that other ranks are about to read.
void store_bytes(
    std::byte* to,
    const std::byte* from,
    size_t size,
    size_t total);

} // namespace openreg::distributed
