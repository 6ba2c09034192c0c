// SPDX-License-Identifier: BSD-3-Clause
// Facts that sysconf() has, and processor time.
#include "platform/machine.h"

#include <time.h>
#include <unistd.h>

namespace openreg::platform {

std::uint64_t physical_memory() noexcept {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long size = sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0
      ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(size)
      : UINT64_MAX;
}

std::chrono::nanoseconds processor_time() noexcept {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) +
      std::chrono::nanoseconds(time.tv_nsec);
}

} // namespace openreg::platform
