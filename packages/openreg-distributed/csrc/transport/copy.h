// SPDX-License-Identifier: BSD-3-Clause
// Copies between tensors, and between them and what the ranks share.
#pragma once

#include <cstddef>

namespace openreg::distributed {

/// Copies `size` bytes, if there are any; the two may be the same or overlap.
void copy_bytes(std::byte* to, const std::byte* from, size_t size);

/// The same for a piece of a result that has `total` bytes. One that is larger
/// than the caches does not go through them: to write it there would read the
/// memory first, and drive out the pieces that other ranks are about to read.
void store_bytes(
    std::byte* to,
    const std::byte* from,
    size_t size,
    size_t total);

} // namespace openreg::distributed
