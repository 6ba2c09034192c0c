// SPDX-License-Identifier: BSD-3-Clause
// The mean size of operands, and the time per operator with small ones run
// inline and with small ones enqueued.
#include "stream/pace.h"

#include "base/thread_local.h"
#include "device/device.h"
#include "device/host_wait.h"
#include "device/settings.h"
#include "stream/capture.h"
#include "stream/stream.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <limits>
#include <mutex>

namespace openreg::aten::pace {
namespace {

using Clock = std::chrono::steady_clock;

// In the mean of bytes, each new value counts one of so many.
constexpr int kWindow = 16;

constexpr size_t kNoLimit = std::numeric_limits<size_t>::max();

OPENREG_THREAD_LOCAL size_t t_mean_bytes = 0;

/// Operators with at most this many bytes of operands, in the mean over the
/// latest ones too, may run on the calling thread if their stream is idle.
size_t inline_bytes() {
  static const size_t value = inline_bytes_setting();
  return value;
}

/// Tries both ways and keeps to the faster one. It compares the time per
/// operator in intervals, from one wait of the host to the next: what was
/// enqueued before the wait is done by then.
class Governor {
 public:
  /// Whether small operators are enqueued. To be asked once per operator.
  bool enqueues() {
    const uint32_t waits = g_host_waits.load(std::memory_order_relaxed);
    const uint32_t count = operators_.load(std::memory_order_relaxed) + 1;
    operators_.store(count, std::memory_order_relaxed); // one lost is no harm
    if (waits != waits_.load(std::memory_order_relaxed)) {
      end_interval(waits, count);
    }
    return enqueues_.load(std::memory_order_relaxed) ||
        (is_far_ && count > kFewest);
  }

 private:
  // A program that waits more often gains nothing from asynchrony.
  static constexpr uint32_t kFewest = 16;
  // At the end of each round so many intervals are run the other way. The first
  // is not measured.
  static constexpr uint32_t kTries = 5;
  // The first round, in intervals. Each that changes nothing doubles the next.
  static constexpr uint32_t kRound = 32;
  static constexpr uint32_t kLongestRound = 1024;
  // Seconds per operator. In less time than the first none can be enqueued.
  static constexpr double kWorthTrying = 6e-6;
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  void end_interval(uint32_t waits, uint32_t count) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) {
      return; // another thread does it
    }
    const Clock::time_point now = Clock::now();
    const bool way = is_far_ ||
        choose(count, std::chrono::duration<double>(now - start_).count());
    recent_ = std::max(count, recent_ / 2);
    enqueues_.store(way && recent_ > kFewest, std::memory_order_relaxed);
    operators_.store(0, std::memory_order_relaxed);
    waits_.store(waits, std::memory_order_relaxed);
    start_ = now;
  }

  /// The way of the next interval, after one of `seconds`.
  bool choose(uint32_t count, double seconds) {
    if (count > kFewest) {
      learn(seconds / count);
    }
    const bool tries = interval_ >= round_ - kTries &&
        (faster_ || shortest_[false] > kWorthTrying);
    const bool way = faster_ != tries;
    switched_ = way != way_;
    way_ = way;
    return way;
  }

  /// Compares the last intervals of a round. What disturbs a measurement makes
  /// it longer, so the shortest counts.
  void learn(double time) {
    if (!switched_ && interval_ + 2 * kTries >= round_) {
      shortest_[way_] = std::min(shortest_[way_], time);
    }
    if (++interval_ == round_) {
      interval_ = 0;
      const bool faster = shortest_[true] < shortest_[false];
      round_ = faster == faster_ ? std::min(2 * round_, kLongestRound) : kRound;
      faster_ = faster;
      shortest_ = {kNever, kNever};
    }
  }

  // What runs inline in another process is a round trip: nothing is tried.
  const bool is_far_ = !kernels_reach_memory();
  std::atomic<uint32_t> operators_{0}; // of this interval
  std::atomic<uint32_t> waits_{0};     // when it began
  std::atomic<bool> enqueues_{false};
  std::mutex mutex_; // for all below
  Clock::time_point start_ = Clock::now();
  uint32_t recent_ = 0;   // operators of one of the latest intervals
  uint32_t interval_ = 0; // of the round
  uint32_t round_ = kRound;
  bool way_ = false;                               // of this interval: enqueued
  bool switched_ = true;                           // with it
  bool faster_ = false;                            // the faster way
  std::array<double, 2> shortest_{kNever, kNever}; // by way
};

bool enqueues_small() {
  static const bool is_on = enqueue_bursts_setting();
  static auto* governor = new Governor; // also for threads that outlive main()
  return is_on && governor->enqueues();
}

// [docs: pace]
/// Whether a call is worth a change of threads while its stream is idle.
bool is_worth_enqueueing(size_t bytes, size_t limit, bool may_raise) {
  t_mean_bytes += bytes / kWindow - t_mean_bytes / kWindow;
  const bool small = enqueues_small() && !may_raise;
  return bytes > limit || t_mean_bytes > limit || small;
}
// [docs: end]

} // namespace

bool is_blocking() {
  return inline_bytes() == kNoLimit;
}

// [docs: decide]
Verdict
decide(c10::DeviceIndex device, Place place, size_t bytes, bool may_raise) {
  if (captures_underway() && is_captured(device)) {
    return place == Place::kAny || place == Place::kQueue
        ? Verdict::kCapture
        : Verdict::kRun; // which a capture refuses
  }
  const size_t limit = inline_bytes();
  if (place == Place::kTurn || limit == kNoLimit) {
    return Verdict::kRun;
  }
  const bool busy = is_busy(device);
  const bool worth = is_worth_enqueueing(bytes, limit, may_raise);
  if (!(busy || worth || place == Place::kQueue) ||
      runs_here(device)) { // what a kernel calls runs at once
    return Verdict::kRun;
  }
  return busy ? Verdict::kEnqueueOverWait : Verdict::kEnqueue;
}
// [docs: end]

} // namespace openreg::aten::pace
