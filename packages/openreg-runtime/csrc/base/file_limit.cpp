// SPDX-License-Identifier: BSD-3-Clause
// Checks RLIMIT_FSIZE.
#include "base/file_limit.h"

#include "base/error.h"

#include <string>
#include <sys/resource.h>

namespace openreg {

void check_file_size(std::size_t size, const char* what) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      size > limit.rlim_cur) {
    throw Failure(
        orErrorMemoryAllocation,
        std::string(what) + " needs a memory file of " + std::to_string(size) +
            " bytes, but the file size limit (RLIMIT_FSIZE, ulimit -f) is " +
            std::to_string(limit.rlim_cur) + ": raise the limit");
  }
}

} // namespace openreg
