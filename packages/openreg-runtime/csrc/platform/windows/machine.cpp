// SPDX-License-Identifier: BSD-3-Clause
// The memory of the machine, and processor time.
#include "platform/machine.h"

#include "platform/windows/system.h"

namespace openreg::platform {

std::uint64_t physical_memory() noexcept {
  MEMORYSTATUSEX status{};
  status.dwLength = sizeof(status);
  return GlobalMemoryStatusEx(&status) != 0 ? status.ullTotalPhys : UINT64_MAX;
}

std::chrono::nanoseconds processor_time() noexcept {
  FILETIME created{};
  FILETIME exited{};
  FILETIME in_kernel{};
  FILETIME in_program{};
  GetProcessTimes(
      GetCurrentProcess(), &created, &exited, &in_kernel, &in_program);
  const auto ticks_of = [](const FILETIME& time) {
    return static_cast<std::int64_t>(
        std::uint64_t{time.dwHighDateTime} << 32 | time.dwLowDateTime);
  };
  constexpr std::int64_t kNanosecondsPerTick = 100;
  return std::chrono::nanoseconds(
      (ticks_of(in_kernel) + ticks_of(in_program)) * kNanosecondsPerTick);
}

} // namespace openreg::platform
