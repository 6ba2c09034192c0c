// SPDX-License-Identifier: BSD-3-Clause
// What a device and its streams share: its failure, which sticks, and its
// limits.
#pragma once

#include "error.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>

namespace openreg {

/// Until when a call waits; nothing is for ever.
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
  explicit DeviceState(std::uint64_t wait_timeout)
      : wait_timeout_(wait_timeout) {}

  /// True if a failure of this kind leaves the device unusable.
  static bool sticks(orError_t code) noexcept {
    return code == orErrorDeviceLost || code == orErrorIllegalAddress;
  }
  bool failed() const noexcept {
    return failed_.load(std::memory_order_acquire);
  }
  /// Throws the failure of the device, if it has one. Returns how often it was
  /// reset, for check_since().
  std::uint64_t check() const {
    const std::uint64_t resets = resets_.load(std::memory_order_acquire);
    if (failed()) {
      rethrow();
    }
    return resets;
  }
  /// As check() after a wait: throws orErrorDeviceLost if the device was reset
  /// meanwhile, which dropped what the call waited for.
  void check_since(std::uint64_t resets) const;
  std::optional<Error> failure() const;
  /// Only the first failure counts.
  void fail(Error error);
  /// Forgets the failure: the end of a reset.
  void recover();

  std::uint64_t wait_timeout() const noexcept {
    return wait_timeout_.load(std::memory_order_relaxed);
  }
  void set_wait_timeout(std::uint64_t milliseconds) noexcept {
    wait_timeout_.store(milliseconds, std::memory_order_relaxed);
  }
  Deadline deadline() const {
    return Deadline::after(wait_timeout());
  }

 private:
  [[noreturn]] void rethrow() const;

  std::atomic<bool> failed_{false};
  std::atomic<std::uint64_t> resets_{0};
  std::atomic<std::uint64_t> wait_timeout_; // milliseconds, 0 for ever
  mutable std::mutex mutex_;
  Error error_;
};

} // namespace openreg
