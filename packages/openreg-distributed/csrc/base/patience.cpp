// SPDX-License-Identifier: BSD-3-Clause
// What a thread does while it spins.
#include "base/patience.h"

#include <sched.h>
#include <thread>

namespace openreg::distributed {
namespace {

/// How many this thread may use. hardware_concurrency() has those of the
/// machine.
int cores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

} // namespace

Patience Patience::of_attempts(int ranks) {
  using std::chrono::microseconds;
  return ranks <= cores() ? Patience(microseconds(100), 16, 4)
                          : Patience(microseconds(30), 4, 16);
}

/// Leaves the core to its other thread for a moment, or to one that waits for a
/// core: it may be the one that is waited for.
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
