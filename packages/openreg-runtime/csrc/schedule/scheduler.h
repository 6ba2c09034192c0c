// SPDX-License-Identifier: BSD-3-Clause
// Schedules: orders in which streams run their work, for the search for missing
// synchronization.
//
// With the schedule `eager`, the worker of a stream runs its work as soon as
// possible. With the others, workers run only the entries that the scheduler
// chooses: `lazy` chooses an entry only if a call waits for it, and `random`
// draws streams after each submission and in each wait. The thread that asks
// for an entry waits until it has run, so the streams of a program with one
// host thread run their work one after another, always in the same order.
//
// An entry may block, for example a collective whose peers are late. Threads
// therefore stop waiting for an entry once the process makes no progress, and a
// watcher releases the workers if the host blocks outside of the library. The
// streams then run as with `eager` until the next call.
#pragma once

#include "schedule/stall_check.h"
#include "settings/schedule_name.h"

#include <atomic>

namespace openreg::schedule {

/// A stream, as the scheduler sees it.
class Queue {
 public:
  enum class State {
    kEmpty,
    kBusy,    // a thread runs an entry
    kBlocked, // the next entry waits for an event of another queue
    kReady
  };
  struct Next {
    State state;
    const Queue* awaited = nullptr; // if blocked
  };
  virtual Next next() const = 0;
  /// Makes the worker run the next entry, and waits until it has run. Returns
  /// false if no entry can run, or if the process stalls first.
  virtual bool run_chosen(StallCheck check) = 0;
  /// Wakes the worker after lets_workers_run() has become true.
  virtual void release_worker() = 0;

 protected:
  ~Queue() = default;
};

// A number, because other libraries read it (see orGetScheduleFlag).
inline int g_mode = 0;
/// Whether the schedule is not eager.
inline bool is_on() noexcept {
  return __atomic_load_n(&g_mode, __ATOMIC_RELAXED) != 0;
}

/// Starts a schedule; no queue may have entries. A random schedule starts with
/// its seed and the environment variable RANK. Throws std::system_error.
void start(const Schedule& schedule);
/// The name of the present schedule. The pointer stays valid.
const char* name();

/// Whether a worker may run entries that were not chosen.
bool lets_workers_run() noexcept;
/// Adds a queue that gets an entry. Called with the queue locked.
void add(Queue& queue);
/// Notes that a thread waits for an entry that it has chosen.
void note_progress() noexcept;
/// Notes that the program waits, which ends a release of the workers.
void note_wait() noexcept;
/// Draws whether queues run entries before the host continues. Called by host
/// threads after they have submitted work, and before they run it themselves.
void interleave();
/// Runs one entry for a thread that waits for `target`. Returns false if none
/// could run.
bool run_next(const Queue& target);
/// Notes an unsuccessful query. A program that polls waits, so after several
/// queries in a row, each one runs an entry.
void note_query(const Queue& target);

} // namespace openreg::schedule
