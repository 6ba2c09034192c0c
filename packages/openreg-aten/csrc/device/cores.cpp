// SPDX-License-Identifier: BSD-3-Clause
// Reads how many threads can run from /proc/loadavg, in its fourth field.
#include "device/cores.h"

#include <atomic>
#include <charconv>
#include <chrono>
#include <fcntl.h>
#include <string_view>
#include <unistd.h>

namespace openreg::aten {
namespace {

using Clock = std::chrono::steady_clock;

/// How many threads run or could; 0 where the system does not tell.
int count_runnable() {
  static const int file = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
  char buffer[64];
  const ssize_t size = file < 0 ? -1 : pread(file, buffer, sizeof(buffer), 0);
  if (size <= 0) {
    return 0;
  }
  const std::string_view text(buffer, static_cast<size_t>(size));
  const size_t slash = text.find('/');
  const size_t space = text.rfind(' ', slash);
  int count = 0;
  if (slash != text.npos && space != text.npos) {
    std::from_chars(text.data() + space + 1, text.data() + slash, count);
  }
  return count;
}

} // namespace

bool cores_are_taken() {
  constexpr int kHundredths = 100;
  constexpr Clock::duration kBetweenLooks = std::chrono::milliseconds(4);
  static std::atomic<Clock::duration> next{Clock::duration::zero()};
  static std::atomic<int> mean{0}; // in hundredths of a thread
  static const int limit =
      static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)) * kHundredths +
      kHundredths / 2;
  const Clock::duration now = Clock::now().time_since_epoch();
  if (now >= next.load(std::memory_order_relaxed)) {
    next.store(now + kBetweenLooks, std::memory_order_relaxed);
    const int before = mean.load(std::memory_order_relaxed);
    mean.store(
        before + (count_runnable() * kHundredths - before) / 4,
        std::memory_order_relaxed);
  }
  return mean.load(std::memory_order_relaxed) > limit;
}

} // namespace openreg::aten
