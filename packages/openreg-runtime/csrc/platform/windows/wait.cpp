// SPDX-License-Identifier: BSD-3-Clause
// Waits by address, which wake the threads of one process. For other processes,
// a wait ends after a millisecond.
#include "platform/wait.h"

#include "platform/windows/system.h"

#include <algorithm>

namespace openreg::platform {

void wait_on(
    std::atomic<std::uint32_t>& word,
    std::uint32_t value,
    std::chrono::nanoseconds most) noexcept {
  if (word.load() != value || most <= std::chrono::nanoseconds::zero()) {
    return;
  }
  constexpr DWORD kMilliseconds = 1;
  if (system_functions().wait_on_address == nullptr) {
    Sleep(kMilliseconds);
    return;
  }
  system_functions().wait_on_address(
      &word, &value, sizeof(value), kMilliseconds);
}

void wake_one(std::atomic<std::uint32_t>& word) noexcept {
  if (system_functions().wake_one != nullptr) {
    system_functions().wake_one(&word);
  }
}

void wake_all(std::atomic<std::uint32_t>& word) noexcept {
  if (system_functions().wake_all != nullptr) {
    system_functions().wake_all(&word);
  }
}

} // namespace openreg::platform
