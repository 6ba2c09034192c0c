// SPDX-License-Identifier: BSD-3-Clause
// A thread without work spins for a moment before it sleeps: a wake costs about
// as much.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace openreg {

/// How long the threads of a stream spin: longer if most gaps between its
/// latest commands were short. With all cores taken a worker wakes late: its
/// gaps are long, and it takes no core from others.
class Spin {
 public:
  using Clock = std::chrono::steady_clock;

  /// A worker has waited for work since then.
  void note_gap(Clock::time_point start) noexcept {
    const bool is_short = Clock::now() - start < 2 * kLong;
    short_gaps_ = std::clamp(short_gaps_ + (is_short ? 1 : -2), 0, kMostGaps);
  }

  /// Gives the lock away until the counter has reached `target`, but not for
  /// long.
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

  /// Leaves the core to its other thread for a moment.
  static void relax_core() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb");
#endif
  }

  int short_gaps_ = 0; // of the latest, more than long ones
};

} // namespace openreg
