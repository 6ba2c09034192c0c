// SPDX-License-Identifier: BSD-3-Clause
// Mappings that a forked child must not have, because it would share the memory
// with its parent and could corrupt it.
#pragma once

#include <cstddef>

namespace openreg::platform {

void keep_from_children(std::byte* begin, std::size_t size);
/// Called after these addresses were unmapped or mapped again.
void forget_mappings(std::byte* begin, std::size_t size) noexcept;

} // namespace openreg::platform
