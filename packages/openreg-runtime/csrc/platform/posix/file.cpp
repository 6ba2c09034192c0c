// SPDX-License-Identifier: BSD-3-Clause
// Open files, and their limits.
#include "platform/file.h"

#include "platform/posix/descriptor.h"
#include "platform/thread.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace openreg::platform {

File::~File() {
  if (handle_ != kNone) {
    const CancellationDeferred deferred;
    withdraw(*this);
    close(descriptor_of(*this));
  }
}

Result size_of(const File& file, std::uint64_t& size) {
  struct stat status{};
  if (fstat(descriptor_of(file), &status) != 0) {
    return Result::last();
  }
  size = static_cast<std::uint64_t>(status.st_size);
  return {};
}

std::optional<std::uint64_t> file_size_limit() noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return std::nullopt;
  }
  return limit.rlim_cur;
}

} // namespace openreg::platform
