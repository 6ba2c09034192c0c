// SPDX-License-Identifier: BSD-3-Clause
// State that a device shares with its streams: its sticky failure, its limits
// and launch counters.
#pragma once

#include "base/error.h"
#include "base/process.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>

namespace openreg {

/// The deadline of a call; without a time the call waits forever.
struct Deadline {
  using Clock = std::chrono::steady_clock;

  std::optional<Clock::time_point> at;
  std::uint64_t limit = 0; // milliseconds, for the message

  static Deadline after(std::uint64_t milliseconds) {
    if (milliseconds == 0) {
      return {};
    }
    return {
        Clock::now() + std::chrono::milliseconds(milliseconds), milliseconds};
  }
};

class DeviceState {
 public:
  /// The time between two resets. Checks of a call hold only in the same epoch.
  using Epoch = std::uint64_t;

  explicit DeviceState(std::uint64_t wait_timeout)
      : wait_timeout_(wait_timeout) {}

  /// True if a failure of this kind leaves the device unusable.
  static bool sticks(orError_t code) noexcept {
    return code == orErrorDeviceLost || code == orErrorIllegalAddress ||
        code == orErrorAssert;
  }
  bool failed() const noexcept {
    return status_.load(std::memory_order_acquire) % 2 == 1;
  }
  /// Throws the failure of the device, if it has one.
  Epoch check() const {
    const Epoch now = status_.load(std::memory_order_acquire);
    if (now % 2 == 1) {
      rethrow();
    }
    return now;
  }
  /// True if the device has neither failed nor been reset since check().
  bool usable_since(Epoch epoch) const noexcept {
    return status_.load(std::memory_order_acquire) == epoch;
  }
  /// Throws as check(), and throws orErrorDeviceLost if the device was reset
  /// since `epoch`, because the reset invalidated earlier checks and waits.
  void check_since(Epoch epoch) const {
    if (!usable_since(epoch)) {
      throw Failure(reason());
    }
  }
  /// The error that check_since() would throw, if any.
  std::optional<Error> failure_since(Epoch epoch) const {
    return usable_since(epoch) ? std::nullopt : std::optional(reason());
  }
  /// The number of resets.
  std::uint64_t resets() const noexcept {
    return status_.load(std::memory_order_acquire) / 2;
  }
  /// Only the first failure counts.
  void fail(Error error);
  /// Replaces the failure.
  void fail_again(Error error);
  /// Forgets the failure: the end of a reset.
  void recover();

  /// How often commands that ran on a stream enqueued work on the device.
  std::uint64_t launches_of_kernels() const noexcept {
    return launches_of_kernels_.load(std::memory_order_acquire);
  }
  void count_launch_of_kernel() noexcept {
    launches_of_kernels_.fetch_add(1, std::memory_order_release);
  }

  /// Counts a command of a stream of the device.
  void count_enqueued() noexcept {
    std::atomic_ref(enqueued_).fetch_add(1, std::memory_order_release);
  }
  /// The counter's address, for readers outside of the library.
  const std::uint64_t* enqueue_counter() const noexcept {
    return &enqueued_;
  }

  /// Returns the number of a new stream, counted from 0.
  int next_stream() noexcept {
    return streams_.fetch_add(1, std::memory_order_relaxed);
  }

  std::uint64_t wait_timeout() const noexcept {
    return wait_timeout_.load(std::memory_order_relaxed);
  }
  void set_wait_timeout(std::uint64_t milliseconds) noexcept {
    wait_timeout_.store(milliseconds, std::memory_order_relaxed);
  }
  /// At exit every wait has a limit, because a kernel may never end.
  Deadline deadline() const {
    constexpr std::uint64_t kAtExit = 200;
    const std::uint64_t limit = wait_timeout();
    if (!process::exiting()) {
      return Deadline::after(limit);
    }
    return Deadline::after(limit == 0 ? kAtExit : std::min(limit, kAtExit));
  }

 private:
  [[noreturn]] void rethrow() const;
  /// Why the device is no longer usable, or no longer the same.
  Error reason() const;

  std::atomic<Epoch> status_{0}; // the epoch, and one more once failed
  std::atomic<std::uint64_t> wait_timeout_; // milliseconds, 0: forever
  std::atomic<std::uint64_t> launches_of_kernels_{0};
  std::uint64_t enqueued_ = 0; // atomic
  std::atomic<int> streams_{0};
  mutable std::mutex mutex_;
  Error error_;
};

} // namespace openreg
