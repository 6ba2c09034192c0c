// SPDX-License-Identifier: BSD-3-Clause
// Compares sizes with the limit of the system.
#include "base/file_limit.h"

#include "base/error.h"
#include "platform/file.h"

#include <string>

namespace openreg {

void check_file_size(std::size_t size, const char* what) {
  const auto limit = platform::file_size_limit();
  if (limit && size > *limit) {
    throw Failure(
        orErrorMemoryAllocation,
        std::string(what) + " needs a memory file of " + std::to_string(size) +
            " bytes, but the file size limit (RLIMIT_FSIZE, ulimit -f) is " +
            std::to_string(*limit) + ": raise the limit");
  }
}

} // namespace openreg
