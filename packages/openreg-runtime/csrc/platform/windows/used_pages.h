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
/// Returns the parts of a range that commit() has made usable since the last
/// call. They are not used any more.
std::vector<UsedPages>
take_used(const FileId& file, std::uint64_t offset, std::size_t size);

} // namespace openreg::platform
