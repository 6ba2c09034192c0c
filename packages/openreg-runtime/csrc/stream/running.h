// SPDX-License-Identifier: BSD-3-Clause
// The commands that a thread runs, innermost first. A kernel may launch on its
// own stream, but cannot wait for it.
#pragma once

#include "activity/recorder.h"
#include "base/device_number.h"
#include "base/error.h"
#include "base/thread_local.h"

namespace openreg {

class Stream;

struct Running {
  const Stream* stream;
  bool part; // of the outer command; else the outer command only waits
  Running* outer;
  bool enqueued = false;  // work on the same stream, which runs later
  bool pipelined = false; // later commands of the stream may have begun
  activity::Ticket* ticket = nullptr; // if the command is recorded
};
inline constinit OPENREG_THREAD_LOCAL Running* t_running = nullptr;

/// The thread state during a command: the command's device is current, and
/// there is no last error. The scope restores the thread's own state.
class RunningScope {
 public:
  RunningScope(
      const Stream* stream,
      int device,
      bool part,
      bool pipelined = false)
      : entry_{stream, part, t_running, /*enqueued=*/false, pipelined},
        device_(exchange_current_device(device)) {
    t_running = &entry_;
  }
  RunningScope(const RunningScope&) = delete;
  RunningScope& operator=(const RunningScope&) = delete;
  ~RunningScope() {
    t_running = entry_.outer;
    exchange_current_device(device_);
  }

 private:
  Running entry_;
  const int device_;
  const LastErrorScope error_;
};

/// The stream of the innermost command that this thread runs, or null.
inline const Stream* running_stream() noexcept {
  return t_running != nullptr ? t_running->stream : nullptr;
}

/// Discards the record of the innermost command of this thread.
void forget_record() noexcept;

// The following functions consider the innermost command and the commands that
// contain it as a part.

/// True if one belongs to the stream.
bool runs_here(const Stream& stream) noexcept;
/// True if one belongs to the stream and is recorded as work.
bool is_recorded_here(const Stream& stream) noexcept;
/// Throws orErrorNotPermitted if a command of the stream cannot run as their
/// part.
void check_may_run_here(const Stream& stream);
/// Notes that they have enqueued an entry on the stream. `is_work`: it must not
/// run before they end. Returns whether one belongs to the stream.
bool note_enqueued_here(const Stream& stream, bool is_work) noexcept;

/// True if any command of this thread, even a waiting one, belongs to the
/// stream.
bool is_under_way_here(const Stream& stream) noexcept;

} // namespace openreg
