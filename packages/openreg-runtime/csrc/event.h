// SPDX-License-Identifier: BSD-3-Clause
// Events: points in the order of a stream that others can wait for.
#pragma once

#include "device_state.h"

#include <openreg/openreg.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>

namespace openreg {

class Stream;

/// One recording of an event. A new record makes a new point, so whoever waits
/// for an older one is not held up by it.
class Point {
 public:
  using Clock = Deadline::Clock;

  explicit Point(const Stream& stream) : stream_(stream) {}
  /// Where it was recorded.
  const Stream& stream() const noexcept {
    return stream_;
  }

  void reach();
  bool reached() const noexcept {
    return reached_.load(std::memory_order_acquire);
  }
  /// False if the time comes first.
  bool wait_until(Clock::time_point time);
  /// Throws orErrorTimeout.
  void wait(const Deadline& deadline);
  /// When the point was reached; meaningful once it was.
  Clock::time_point time() const noexcept {
    return time_;
  }

 private:
  const Stream& stream_;
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
