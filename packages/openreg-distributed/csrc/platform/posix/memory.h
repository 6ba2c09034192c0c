// SPDX-License-Identifier: BSD-3-Clause
// Limits of files, and mappings that forked children do not have.
#pragma once

#include <cstddef>

namespace openreg::distributed {

/// Whether this process may create a file of `size` bytes. Sizing a file beyond
/// the limit may end the process.
bool may_create_file(size_t size) noexcept;
/// Where the system cannot do this, a child checks before each access that it
/// is not a rank.
void keep_from_children(std::byte* begin, size_t size) noexcept;

} // namespace openreg::distributed
