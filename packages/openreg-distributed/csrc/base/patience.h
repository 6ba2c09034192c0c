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
  /// Spins for as long as `limit`. After `most` waits that were longer, only
  /// one of `every` is tried.
  Patience(std::chrono::microseconds limit, int most, unsigned every)
      : limit_(limit), most_(most), every_(every), left_(most) {}

  /// For calls that are tried on the calling thread, which others have to come
  /// to. With a core for each rank of the group they are about to come;
  /// without, one that spins takes the core of the one that it waits for.
  static Patience of_attempts(int ranks);

  /// Spins until `ready()`, but not for long. Returns whether it is.
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
