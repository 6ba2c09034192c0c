// SPDX-License-Identifier: BSD-3-Clause
// The failure of a command, kept on its stream until a call returns it.
#pragma once

#include "base/error.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

namespace openreg {

/// The caller holds the stream's lock, except for exists().
class KeptFailure {
 public:
  bool exists() const noexcept {
    return exists_;
  }
  const std::optional<Error>& get() const noexcept {
    return failure_;
  }
  /// Keeps the first failure. `command` is the number of the command that
  /// failed, or was `dropped` because it came after the failure.
  void keep(Error error, std::uint64_t command, bool dropped) {
    number_error(error);
    if (!failure_) {
      failure_ = std::move(error);
      exists_ = true;
    }
    if (dropped) {
      last_dropped_ = command;
    }
  }
  void forget() noexcept {
    failure_.reset();
    exists_ = false;
  }
  /// Notes that a call waits for the first `commands` commands and will report
  /// the failure.
  void note_drained(std::uint64_t commands) noexcept {
    drained_ = std::max(drained_, commands);
  }
  /// Clears the failure, unless commands were dropped that were enqueued after
  /// the last note_drained(): their caller must see it, too.
  void forget_reported() noexcept {
    if (last_dropped_ <= drained_) {
      forget();
    }
  }

 private:
  std::optional<Error> failure_;
  std::atomic<bool> exists_{false};
  std::uint64_t last_dropped_ = 0; // the number of a command
  std::uint64_t drained_ = 0;
};

} // namespace openreg
