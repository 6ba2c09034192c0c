// SPDX-License-Identifier: BSD-3-Clause
// Compares processor time with the time that passed.
#include "schedule/stall_check.h"

#include <ctime>

namespace openreg {
namespace {

std::chrono::nanoseconds processor_time() noexcept {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) +
      std::chrono::nanoseconds(time.tv_nsec);
}

} // namespace

StallCheck::StallCheck(
    std::chrono::milliseconds without_work,
    std::chrono::milliseconds longest) noexcept
    : window_(without_work),
      end_(Clock::now() + longest),
      window_end_(Clock::now() + without_work),
      used_(processor_time()) {}

bool StallCheck::stalled() noexcept {
  const auto now = Clock::now();
  if (now >= end_) {
    return true;
  }
  if (now < window_end_) {
    return false;
  }
  const auto used = processor_time();
  if (used - used_ < window_ / 10) {
    return true;
  }
  window_end_ = now + window_;
  used_ = used;
  return false;
}

} // namespace openreg
