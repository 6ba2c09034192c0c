// SPDX-License-Identifier: BSD-3-Clause
// Detects that a process waits for something other than its own threads.
#pragma once

#include <chrono>

namespace openreg {

/// Finds a stall when the process has used almost no processor time for a
/// while, because computing takes processor time and a blocked thread takes
/// none. Also finds one after a longest time, because a blocked thread may
/// spin.
class StallCheck {
 public:
  using Clock = std::chrono::steady_clock;
  /// The interval at which stalled() must be called.
  static constexpr std::chrono::milliseconds kLook{10};

  StallCheck(
      std::chrono::milliseconds without_work,
      std::chrono::milliseconds longest) noexcept;
  bool stalled() noexcept;

 private:
  std::chrono::milliseconds window_;
  Clock::time_point end_;
  Clock::time_point window_end_;
  std::chrono::nanoseconds used_; // at the start of the window
};

} // namespace openreg
