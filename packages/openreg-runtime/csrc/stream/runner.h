// SPDX-License-Identifier: BSD-3-Clause
// Executes a stream's entries on the executor thread, independent of the queue
// and of the stream's lock.
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

  /// Called before an entry runs. Counts the call for injected failures.
  void inject_failure(Entry& entry) const;
  /// Begins the record of an entry. `may_be_part`: the entry may be a part of
  /// the command that this thread runs.
  void begin_record(Entry& entry, bool may_be_part) const;

  /// Returns the failure of the entry, or the reason why it was dropped.
  /// `before` is the failure of the stream at its turn.
  std::optional<Error> execute(
      const Entry& entry,
      const std::optional<Error>& before);
  /// Executes the entry as a part of the call that created it, whose wait
  /// cannot be abandoned.
  std::optional<Error> execute_in_call(
      Entry& entry,
      bool in_own_kernel,
      const std::optional<Error>& before);
  /// Stamps the point of a record, also after a failure, so that each wait
  /// ends.
  void stamp(
      Point& point,
      DeviceState::Epoch epoch,
      const std::optional<Error>& before) const;

  // Begin and end of an entry that shares the lane with others.
  bool queues(const Entry& entry) const noexcept;
  std::optional<Error> begin(const Entry& entry);
  void finish(const Entry& entry, std::optional<Error>& error);

  /// Calls the cleanup of a launch. If the launch failed or was dropped, its
  /// error is the thread's last error during the cleanup. An exception of the
  /// cleanup becomes the error, if there is none yet.
  static void release(const Entry& entry, std::optional<Error>& error);
  /// Like release(), and clears an error that equals the device's failure.
  void end(const Entry& entry, std::optional<Error>& error) const;

  /// The name of the command that another process runs for the lane, or null.
  /// Any thread may call it.
  const char* running() const noexcept {
    return lane_->running();
  }

 private:
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
