// SPDX-License-Identifier: BSD-3-Clause
// Carries out what a stream holds, on the thread that is its executor. It knows
// neither the queue nor the lock of the stream.
#pragma once

#include "backend/backend.h"
#include "base/device_state.h"
#include "base/error.h"
#include "stream/entry.h"

#include <cstdint>
#include <memory>
#include <optional>

namespace openreg {

class Runner {
 public:
  Runner(const Stream& stream, DeviceState& state, std::unique_ptr<Lane> lane)
      : stream_(stream), state_(state), lane_(std::move(lane)) {}

  // Before an entry runs.
  /// Counts the call, which only an injected failure can fail now.
  void inject_failure(Entry& entry) const;
  /// What is recorded of an entry begins with the call that makes it.
  /// `may_be_part` of what this thread runs.
  void begin_record(Entry& entry, bool may_be_part) const;

  /// Returns the failure of the entry, or why it was dropped: `before` is the
  /// failure of the stream when its turn came.
  std::optional<Error> execute(
      const Entry& entry,
      const std::optional<Error>& before);
  /// The same as a part of the call that made the entry, which cannot leave
  /// what it waits for.
  std::optional<Error> execute_in_call(
      Entry& entry,
      bool in_own_kernel,
      const std::optional<Error>& before);
  /// Marks the point of a record, also behind a failure: each wait ends.
  void stamp(
      Point& point,
      DeviceState::Epoch epoch,
      const std::optional<Error>& before) const;

  // The two halves of an entry that is on the lane beside others.
  bool queues(const Entry& entry) const noexcept;
  std::optional<Error> begin(const Entry& entry);
  void finish(const Entry& entry, std::optional<Error>& error);

  /// The end of an entry: calls the cleanup of a launch, which finds the error
  /// of a launch that failed or was dropped as the last error of the thread. An
  /// exception of the cleanup is an error, if there is none yet.
  static void release(const Entry& entry, std::optional<Error>& error);
  /// The same, and forgets an error that the failure of the device says.
  void end(const Entry& entry, std::optional<Error>& error) const;

  /// What the lane runs elsewhere now, or null. Any thread may ask.
  const char* running() const noexcept {
    return lane_->running();
  }

 private:
  std::optional<Error> failure_before(
      DeviceState::Epoch epoch,
      const std::optional<Error>& before) const;
  std::optional<Error> execute_unrecorded(
      const Entry& entry,
      const std::optional<Error>& before);
  std::optional<Error> execute_run(
      const GraphRun& run,
      DeviceState::Epoch epoch);
  std::optional<Error> wait_for(Point& point) const;
  template <typename Work>
  std::optional<Error> recorded(activity::Ticket* ticket, const Work& work);
  template <typename Work>
  std::optional<Error> attempt(const Work& work);

  const Stream& stream_;
  DeviceState& state_;
  const std::unique_ptr<Lane> lane_; // the executor's
};

} // namespace openreg
