// SPDX-License-Identifier: BSD-3-Clause
// Spinning, where that is cheaper than to sleep and be woken.
#pragma once

#include <atomic>
#include <chrono>

namespace openreg::distributed {

using Clock = std::chrono::steady_clock;

/// Whether to spin for other threads and ranks. It pays after waits that were
/// short; one that was long is tried again now and then.
class Patience {
 public:
  explicit Patience(std::chrono::microseconds limit) : limit_(limit) {}

  /// Spins until `ready()`, but not for long. Returns whether it is.
  template <typename Ready>
  bool spin(const Ready& ready) {
    if (ready()) {
      return true;
    }
    const int left = left_.load(std::memory_order_relaxed);
    if (left == 0 &&
        waits_.fetch_add(1, std::memory_order_relaxed) % kTryEvery != 0) {
      return false;
    }
    const auto end = Clock::now() + limit_;
    do {
      for (int i = 0; i < 32; ++i) {
        if (ready()) {
          left_.store(kMost, std::memory_order_relaxed);
          return true;
        }
        relax();
      }
    } while (Clock::now() < end);
    left_.store(left > 0 ? left - 1 : 0, std::memory_order_relaxed);
    return false;
  }

 private:
  static constexpr int kMost = 4;
  static constexpr unsigned kTryEvery = 16;

  static void relax();

  const std::chrono::microseconds limit_;
  std::atomic<int> left_{kMost};
  std::atomic<unsigned> waits_{0};
};

} // namespace openreg::distributed
