// SPDX-License-Identifier: BSD-3-Clause
// Measures the offset between two clocks.
#include "clock.h"

#include <limits>
#include <time.h>

namespace openreg::profiler {
namespace {

std::int64_t read(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

} // namespace

std::int64_t monotonic_to_realtime() {
  // The thread may be interrupted between two reads, so the closest pair
  // counts.
  constexpr int kTries = 10;
  std::int64_t best = 0;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < kTries; ++i) {
    const std::int64_t before = read(CLOCK_MONOTONIC);
    const std::int64_t realtime = read(CLOCK_REALTIME);
    const std::int64_t after = read(CLOCK_MONOTONIC);
    if (after - before < least) {
      least = after - before;
      best = realtime - (before + (after - before) / 2);
    }
  }
  return best;
}

} // namespace openreg::profiler
