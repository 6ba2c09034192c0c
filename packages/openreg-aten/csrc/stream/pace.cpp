// SPDX-License-Identifier: BSD-3-Clause
// Measures the mean size of operands, and the time per operator for small
// operators that run inline and that are enqueued.
#include "stream/pace.h"

#include "base/thread_local.h"
#include "device/device.h"
#include "device/error.h"
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

// Each new value contributes 1 / kWindow to the mean.
constexpr int kWindow = 16;

constexpr size_t kNoLimit = std::numeric_limits<size_t>::max();

OPENREG_THREAD_LOCAL size_t t_mean_bytes = 0;

struct Limits {
  // Operators with at most this many bytes of operands may run on the calling
  // thread if their stream is idle. The mean over the latest operators must not
  // exceed it either.
  size_t inline_bytes;
  const int* schedule; // not 0 while the runtime chooses the order of work

  bool is_scheduled() const noexcept {
    return __atomic_load_n(schedule, __ATOMIC_RELAXED) != 0;
  }
};

const Limits& limits() {
  static const Limits value = [] {
    Limits made{inline_bytes_setting(), nullptr};
    OPENREG_CHECK(orGetScheduleFlag(&made.schedule));
    return made;
  }();
  return value;
}

/// Tries both ways to run small operators and keeps the faster one. It compares
/// the time per operator in intervals from one host wait to the next:
/// everything enqueued before the wait is complete by then.
class Governor {
 public:
  /// Whether small operators are enqueued. Call it once per operator.
  bool enqueues() {
    const uint32_t waits = g_host_waits.load(std::memory_order_relaxed);
    const uint32_t count = operators_.load(std::memory_order_relaxed) + 1;
    // Losing a count is harmless.
    operators_.store(count, std::memory_order_relaxed);
    if (waits != waits_.load(std::memory_order_relaxed)) {
      end_interval(waits, count);
    }
    return enqueues_.load(std::memory_order_relaxed) ||
        (is_remote_ && count > kMinOperators);
  }

 private:
  // A program that waits more often gains nothing from asynchrony.
  static constexpr uint32_t kMinOperators = 16;
  // The number of intervals at the end of each round that try the other way.
  // The first of them is not measured.
  static constexpr uint32_t kTries = 5;
  // The number of intervals in the first round. A round without a change
  // doubles it.
  static constexpr uint32_t kRound = 32;
  static constexpr uint32_t kLongestRound = 1024;
  // Seconds per operator. Enqueueing an operator takes at least this long.
  static constexpr double kMinEnqueueTime = 6e-6;
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  void end_interval(uint32_t waits, uint32_t count) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) {
      return; // another thread does it
    }
    const Clock::time_point now = Clock::now();
    const bool enqueues = is_remote_ ||
        choose(count, std::chrono::duration<double>(now - start_).count());
    recent_ = std::max(count, recent_ / 2);
    enqueues_.store(
        enqueues && recent_ > kMinOperators, std::memory_order_relaxed);
    operators_.store(0, std::memory_order_relaxed);
    waits_.store(waits, std::memory_order_relaxed);
    start_ = now;
  }

  /// Returns whether the next interval enqueues, after an interval of
  /// `seconds`.
  bool choose(uint32_t count, double seconds) {
    if (count > kMinOperators) {
      learn(seconds / count);
    }
    const bool tries = interval_ >= round_ - kTries &&
        (faster_when_enqueued_ || shortest_[false] > kMinEnqueueTime);
    const bool enqueues = faster_when_enqueued_ != tries;
    just_changed_ = enqueues != enqueued_;
    enqueued_ = enqueues;
    return enqueues;
  }

  /// Compares the last intervals of a round. Disturbances only make a
  /// measurement longer, so the shortest one counts.
  void learn(double time) {
    if (!just_changed_ && interval_ + 2 * kTries >= round_) {
      shortest_[enqueued_] = std::min(shortest_[enqueued_], time);
    }
    if (++interval_ == round_) {
      interval_ = 0;
      const bool faster = shortest_[true] < shortest_[false];
      round_ = faster == faster_when_enqueued_
          ? std::min(2 * round_, kLongestRound)
          : kRound;
      faster_when_enqueued_ = faster;
      shortest_ = {kNever, kNever};
    }
  }

  // If kernels run in another process, running inline is a round trip, so small
  // operators are always enqueued.
  const bool is_remote_ = !kernels_reach_memory();
  std::atomic<uint32_t> operators_{0}; // of this interval
  std::atomic<uint32_t> waits_{0};     // at its start
  std::atomic<bool> enqueues_{false};
  std::mutex mutex_; // guards all members below
  Clock::time_point start_ = Clock::now();
  uint32_t recent_ = 0;   // decaying maximum of operators per interval
  uint32_t interval_ = 0; // within the round
  uint32_t round_ = kRound;
  bool enqueued_ = false;    // in the current interval
  bool just_changed_ = true; // at the start of the current interval
  bool faster_when_enqueued_ = false;
  std::array<double, 2> shortest_{kNever, kNever}; // by enqueued_
};

bool enqueues_small() {
  static auto* governor = // threads may outlive main()
      enqueue_bursts_setting() ? new Governor : nullptr;
  return governor != nullptr && governor->enqueues();
}

// [docs: pace]
/// Whether the host gains by enqueueing a call while its stream is idle.
bool gains_from_enqueueing(size_t bytes, size_t limit, bool may_raise) {
  t_mean_bytes += bytes / kWindow - t_mean_bytes / kWindow;
  const bool small = enqueues_small() && !may_raise;
  return bytes > limit || t_mean_bytes > limit || small;
}
// [docs: end]

} // namespace

bool is_blocking() {
  return limits().inline_bytes == kNoLimit;
}

// [docs: decide]
Verdict
decide(c10::DeviceIndex device, Place place, size_t bytes, bool may_raise) {
  if (captures_underway() && is_captured(device)) {
    return place == Place::kAny || place == Place::kQueue
        ? Verdict::kCapture
        : Verdict::kRun; // a capture rejects it
  }
  const Limits& own = limits();
  const size_t limit = own.inline_bytes;
  if (place == Place::kInTurn || limit == kNoLimit) {
    return Verdict::kRun;
  }
  if (C10_UNLIKELY(own.is_scheduled())) { // a missing wait then shows
    return runs_here(device) ? Verdict::kRun : Verdict::kEnqueueOverWait;
  }
  const bool busy = is_busy(device);
  const bool gains = gains_from_enqueueing(bytes, limit, may_raise);
  if (!(busy || gains || place == Place::kQueue) ||
      runs_here(device)) { // a call from a kernel runs immediately
    return Verdict::kRun;
  }
  return busy ? Verdict::kEnqueueOverWait : Verdict::kEnqueue;
}
// [docs: end]

} // namespace openreg::aten::pace
