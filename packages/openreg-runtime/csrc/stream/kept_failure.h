// SPDX-License-Identifier: BSD-3-Clause
// The failure that a command left on its stream, until a call has returned it.
#pragma once

#include "base/error.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

namespace openreg {

/// The stream's lock is held but for exists().
class KeptFailure {
 public:
  bool exists() const noexcept {
    return exists_;
  }
  const std::optional<Error>& get() const noexcept {
    return failure_;
  }
  /// The first failure counts. `command` has this number, and was dropped if
  /// it is behind the failure.
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
  /// A call has begun that waits for so many commands, and reports the failure.
  void note_drained(std::uint64_t commands) noexcept {
    drained_ = std::max(drained_, commands);
  }
  /// Forgets the failure unless commands that were enqueued after the last such
  /// call began have been dropped: their caller has to learn of it too.
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
