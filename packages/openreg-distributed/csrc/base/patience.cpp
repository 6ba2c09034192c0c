// SPDX-License-Identifier: BSD-3-Clause
// Spinning of a thread.
#include "base/patience.h"

#include "platform/process.h"

#include <thread>

namespace openreg::distributed {

Patience Patience::of_attempts(int ranks) {
  using std::chrono::microseconds;
  return ranks <= usable_cores() ? Patience(microseconds(100), 16, 4)
                                 : Patience(microseconds(30), 4, 16);
}

/// Yields the core to its other hardware thread, or to a thread that waits for
/// a core, which may be the awaited one.
void Patience::relax() {
  constexpr unsigned kSpinsPerYield = 32;
  thread_local unsigned spins = 0;
  if (++spins % kSpinsPerYield == 0) {
    std::this_thread::yield();
    return;
  }
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

} // namespace openreg::distributed
