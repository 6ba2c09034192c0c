// SPDX-License-Identifier: BSD-3-Clause
// Compares processor time with the time that passed.
#include "schedule/stall_check.h"

#include "platform/machine.h"

namespace openreg {

using platform::processor_time;

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
