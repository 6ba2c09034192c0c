// SPDX-License-Identifier: BSD-3-Clause
// Waits by polling, because POSIX has no wait on a word of shared memory that
// survives the end of another process.
#include "platform/wait.h"

#include <algorithm>
#include <thread>

namespace openreg::distributed {

void wait_on(
    std::atomic<uint32_t>& word,
    uint32_t value,
    std::chrono::milliseconds most) noexcept {
  constexpr std::chrono::microseconds kLongest{500};
  const auto end = std::chrono::steady_clock::now() + most;
  for (std::chrono::microseconds pause{10};
       word.load() == value && std::chrono::steady_clock::now() < end;
       pause = std::min(2 * pause, kLongest)) {
    std::this_thread::sleep_for(pause);
  }
}

void wake_all(std::atomic<uint32_t>&) noexcept {}

} // namespace openreg::distributed
