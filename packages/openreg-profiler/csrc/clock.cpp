// SPDX-License-Identifier: BSD-3-Clause
// Measures the offset between two clocks.
#include "clock.h"

#include <chrono>
#include <limits>

namespace openreg::profiler {
namespace {

template <typename Clock>
std::int64_t read() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             Clock::now().time_since_epoch())
      .count();
}

} // namespace

std::int64_t monotonic_to_realtime() {
  // The thread may be interrupted between two reads, so the closest pair
  // counts.
  constexpr int kTries = 10;
  std::int64_t best = 0;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < kTries; ++i) {
    const std::int64_t before = read<std::chrono::steady_clock>();
    const std::int64_t realtime = read<std::chrono::system_clock>();
    const std::int64_t after = read<std::chrono::steady_clock>();
    if (after - before < least) {
      least = after - before;
      best = realtime - (before + (after - before) / 2);
    }
  }
  return best;
}

} // namespace openreg::profiler
