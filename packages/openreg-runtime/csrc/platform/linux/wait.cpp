// SPDX-License-Identifier: BSD-3-Clause
// Waits by futexes.
#include "platform/wait.h"

#include <climits>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace openreg::platform {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

void wait_on(
    std::atomic<std::uint32_t>& word,
    std::uint32_t value,
    std::chrono::nanoseconds most) noexcept {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(most);
  const timespec limit{seconds.count(), (most - seconds).count()};
  syscall(SYS_futex, &word, FUTEX_WAIT, value, &limit, nullptr, 0);
}

void wake_one(std::atomic<std::uint32_t>& word) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

void wake_all(std::atomic<std::uint32_t>& word) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

} // namespace openreg::platform
