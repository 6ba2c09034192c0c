// SPDX-License-Identifier: BSD-3-Clause
// The commands that a thread is running, innermost first: a kernel may launch
// on its own stream, but cannot wait for it.
#pragma once

#include "activity/recorder.h"
#include "base/device_number.h"
#include "base/error.h"
#include "base/thread_local.h"

namespace openreg {

class Stream;

struct Running {
  const Stream* stream;
  bool part; // of the outer command, which runs it; or it only waits meanwhile
  Running* outer;
  bool enqueued = false;  // work on the same stream, which runs later
  bool pipelined = false; // later commands of the stream may have begun
  activity::Ticket* ticket = nullptr; // if the command is recorded
};
inline constinit OPENREG_THREAD_LOCAL Running* t_running = nullptr;

/// What a command sees of the thread that happens to run it: its device is the
/// current one, and there is no error yet. The thread gets its own back.
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

/// The stream whose command this thread is running, innermost, or null.
inline const Stream* running_stream() noexcept {
  return t_running != nullptr ? t_running->stream : nullptr;
}

/// The command that this thread is running, innermost, leaves no record.
void forget_record() noexcept;

// What follows asks about the innermost command and those that it is a part of.

/// True if one is of the stream.
bool runs_here(const Stream& stream) noexcept;
/// True if one is of the stream and is recorded as work.
bool is_recorded_here(const Stream& stream) noexcept;
/// Throws orErrorNotPermitted if a command of the stream cannot run as a part
/// of them.
void check_may_run_here(const Stream& stream);
/// Notes that they have enqueued more on the stream: `is_work` if it must not
/// run before them. Returns whether one is of the stream.
bool note_enqueued_here(const Stream& stream, bool is_work) noexcept;

/// True if any command of this thread is of the stream, also one that waits.
bool is_under_way_here(const Stream& stream) noexcept;

} // namespace openreg
