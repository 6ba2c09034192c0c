// SPDX-License-Identifier: BSD-3-Clause
// Spinning, where it is cheaper than sleeping and waking.
#pragma once

#include <atomic>
#include <chrono>

namespace openreg::distributed {

using Clock = std::chrono::steady_clock;

/// Decides whether to spin for other threads and ranks. Spinning pays after
/// short waits; after long waits it is retried occasionally.
class Patience {
 public:
  /// Spins for at most `limit`. After `most` longer waits, spins only in one of
  /// `every` waits.
  Patience(std::chrono::microseconds limit, int most, unsigned every)
      : limit_(limit), most_(most), every_(every), left_(most) {}

  /// For attempts on the calling thread, which need the other ranks. With a
  /// core for each rank of the group they arrive soon; otherwise a spinning
  /// thread may take the core of the rank that it waits for.
  static Patience of_attempts(int ranks);

  /// Spins briefly until `ready()`. Returns whether it is ready.
  template <typename Ready>
  bool spin(const Ready& ready) {
    if (ready()) {
      return true;
    }
    const int left = left_.load(std::memory_order_relaxed);
    if (left == 0 &&
        waits_.fetch_add(1, std::memory_order_relaxed) % every_ != 0) {
      return false;
    }
    const auto end = Clock::now() + limit_;
    do {
      for (int i = 0; i < 32; ++i) {
        if (ready()) {
          left_.store(most_, std::memory_order_relaxed);
          return true;
        }
        relax();
      }
    } while (Clock::now() < end);
    left_.store(left > 0 ? left - 1 : 0, std::memory_order_relaxed);
    return false;
  }

 private:
  static void relax();

  const std::chrono::microseconds limit_;
  const int most_;
  const unsigned every_;
  std::atomic<int> left_;
  std::atomic<unsigned> waits_{0};
};

} // namespace openreg::distributed
