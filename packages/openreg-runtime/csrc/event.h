// SPDX-License-Identifier: BSD-3-Clause
// Events: points in the order of a stream that others can wait for.
#pragma once

#include <openreg/openreg.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>

namespace openreg {

/// One recording of an event. A new record makes a new point, so whoever waits
/// for an older one is not held up by it.
class Point {
 public:
  using Clock = std::chrono::steady_clock;

  void reach();
  bool reached() const noexcept {
    return reached_.load(std::memory_order_acquire);
  }
  void wait();
  /// When the point was reached; meaningful once it was.
  Clock::time_point time() const noexcept {
    return time_;
  }

 private:
  std::atomic<bool> reached_{false};
  Clock::time_point time_;
  std::mutex mutex_;
  std::condition_variable condition_;
};

class Event {
 public:
  /// What was recorded last, or null.
  std::shared_ptr<Point> last() const;
  void record(std::shared_ptr<Point> point);

  /// Makes a recycled event like a new one.
  void reset(bool timing);
  bool timing() const noexcept {
    return timing_;
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<Point> last_;
  bool timing_ = true;
};

} // namespace openreg
