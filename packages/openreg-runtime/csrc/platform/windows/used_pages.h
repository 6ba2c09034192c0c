// SPDX-License-Identifier: BSD-3-Clause
// Pages of memory files that may have data.
#pragma once

#include "platform/file.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace openreg::platform {

/// A range of a file.
struct UsedPages {
  std::uint64_t offset;
  std::size_t size;
};
/// Returns the parts of a range that may have data: commit() has made them
/// usable, and set_unused() was not called for them since.
std::vector<UsedPages>
find_used(const FileId& file, std::uint64_t offset, std::size_t size);
/// Called after pages of find_used() were filled with zeros.
void set_unused(const FileId& file, const UsedPages& pages);

} // namespace openreg::platform
