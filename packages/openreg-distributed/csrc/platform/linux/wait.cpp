// SPDX-License-Identifier: BSD-3-Clause
// Waits by futexes.
#include "platform/wait.h"

#include <climits>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace openreg::distributed {

void wait_on(
    std::atomic<uint32_t>& word,
    uint32_t value,
    std::chrono::milliseconds most) noexcept {
  const timespec time{most.count() / 1000, most.count() % 1000 * 1'000'000};
  syscall(SYS_futex, &word, FUTEX_WAIT, value, &time, nullptr, 0);
}

void wake_all(std::atomic<uint32_t>& word) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

} // namespace openreg::distributed
