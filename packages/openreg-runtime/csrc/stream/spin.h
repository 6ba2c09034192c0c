// SPDX-License-Identifier: BSD-3-Clause
// Idle threads spin briefly before they sleep, because a wake-up costs about as
// much.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace openreg {

/// The spin time of a stream's threads: longer if most recent gaps between
/// commands were short. When all cores are busy, a worker wakes late and its
/// gaps are long, so it does not take a core from other threads.
class Spin {
 public:
  using Clock = std::chrono::steady_clock;

  /// Notes that a worker has waited for work since `start`.
  void note_gap(Clock::time_point start) noexcept {
    const bool is_short = Clock::now() - start < 2 * kLong;
    short_gaps_ = std::clamp(short_gaps_ + (is_short ? 1 : -2), 0, kMostGaps);
  }

  /// Releases the lock briefly, until the counter reaches `target`.
  template <typename Lock>
  void wait(
      Lock& lock,
      const std::atomic<std::uint64_t>& counter,
      std::uint64_t target) const {
    static const bool alone = std::thread::hardware_concurrency() == 1;
    if (alone) {
      return;
    }
    const auto limit = short_gaps_ > kMostGaps / 2 ? kLong : kShort;
    lock.unlock();
    const auto end = Clock::now() + limit;
    const auto reached = [&] {
      return counter.load(std::memory_order_relaxed) >= target;
    };
    do {
      for (int i = 0; i < kSpinsPerClock && !reached(); ++i) {
        relax_core();
      }
    } while (!reached() && Clock::now() < end);
    lock.lock();
  }

 private:
  static constexpr std::chrono::microseconds kShort{10};
  static constexpr std::chrono::microseconds kLong{60};
  static constexpr int kSpinsPerClock = 16;
  static constexpr int kMostGaps = 8; // counted

  /// Yields the core to its other hardware thread.
  static void relax_core() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb");
#endif
  }

  int short_gaps_ = 0; // recent short gaps minus long ones
};

} // namespace openreg
