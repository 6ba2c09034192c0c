// SPDX-License-Identifier: BSD-3-Clause
// Streams: ordered queues of commands.
//
// One thread at a time, the *executor*, runs the commands of a stream: its
// worker, which starts with the first enqueued command, or a waiting thread
// that helps. A blocking launch on an idle stream therefore costs two
// uncontended locks and no thread switch. A call that runs its command on its
// own thread queues for the role, too, so it waits only for earlier work. Idle
// workers and waiting threads spin briefly, because a wake-up costs more than a
// small kernel. A worker spins longer while commands arrive in quick
// succession. A worker that is idle for about a second ends, so that an unused
// stream holds no thread.
//
// A command may use its own stream. A blocking call on it becomes a part of the
// command. Enqueued work runs after the command, which from then on cannot make
// blocking calls there, because they would have to run even later.
//
// Errors: a command that throws leaves its error on the stream, which drops its
// commands until a call that waits for the stream has returned the error. An
// event recorded after the error keeps it, and streams that wait for the event
// fail with it, so nothing is computed from the results of a failed command. A
// sticky error fails the device instead, whose streams then drop their
// commands. A command belongs to the device epoch in which its call was
// checked: after a reset it is refused or dropped.
#pragma once

#include "backend/backend.h"
#include "base/device_state.h"
#include "base/error.h"
#include "schedule/scheduler.h"
#include "stream/entry.h"
#include "stream/event.h"
#include "stream/graph.h"
#include "stream/kept_failure.h"
#include "stream/runner.h"
#include "stream/running.h"
#include "stream/spin.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace openreg {

class Stream final : public schedule::Queue {
 public:
  Stream(int device, int priority, DeviceState& state, Backend& backend)
      : device_(device),
        number_(state.next_stream()),
        priority_(priority),
        state_(state),
        runner_(*this, state, backend.open_lane()) {}

  int device() const noexcept {
    return device_;
  }
  /// The stream's number on its device, as in activity records.
  int number() const noexcept {
    return number_;
  }
  int priority() const noexcept {
    return priority_;
  }
  void set_priority(int priority) noexcept {
    priority_ = priority;
  }

  using Epoch = DeviceState::Epoch;

  /// See DeviceState::check().
  Epoch check_usable() const {
    return state_.check();
  }
  void check_usable_since(Epoch epoch) const {
    state_.check_since(epoch);
  }
  // The following functions throw as DeviceState::check_since(), and throw
  // orErrorInvalidHandle if the stream was retired since its lookup.
  void enqueue(Command command, Epoch epoch);
  /// Runs `command` in order on the calling thread. Throws its failure, and
  /// orErrorTimeout.
  void run(Command command, Epoch epoch);
  void call(HostCall function, Epoch epoch);
  void record(std::shared_ptr<Point> point, Epoch epoch);
  void wait(std::shared_ptr<Point> point, Epoch epoch);
  /// Runs the commands one after another; a failed command leaves its failure.
  void replay(GraphRun run, Epoch epoch);

  // Captures (capture.cpp). A captured stream passes its entries to the
  // capture, except for calls from its commands.
  /// Throws orErrorInvalidValue if it is captured already.
  void begin_capture(Epoch epoch, orStreamCaptureMode mode);
  /// Throws as orStreamEndCapture().
  std::shared_ptr<const Graph> end_capture();
  /// The capture of the stream, or null.
  std::shared_ptr<Capture> capture();
  /// Throws orErrorStreamCaptureUnsupported and invalidates the capture, if
  /// there is one: `what` cannot be captured.
  void check_not_captured(const char* what);
  /// Records a point in the stream's capture; null if it is not captured.
  std::shared_ptr<Point> record_in_capture(Epoch epoch);

  bool idle() const;
  /// The numbers of enqueued and of completed commands.
  std::pair<std::uint64_t, std::uint64_t> progress() const;
  /// The failure that a command left, without clearing it.
  std::optional<Error> failure() const;
  /// Clears the failure in stream order, because events have passed it to
  /// streams that report it.
  void forget_failure_in_order(Epoch epoch);
  /// True if this thread runs a command of the stream, also as part of another
  /// command.
  bool runs_here() const noexcept {
    return openreg::runs_here(*this);
  }
  /// Throws orErrorNotPermitted if this thread runs a command of the stream.
  void check_may_wait() const;
  /// Throws orErrorNotPermitted if such a command has enqueued work that a
  /// blocking call would overtake.
  void check_may_run() const {
    check_may_run_here(*this);
  }
  /// Waits for the present queue; does not clear a failure. Throws
  /// orErrorTimeout.
  void drain(const Deadline& deadline);
  /// Waits until the first `place` commands have completed. Throws
  /// orErrorTimeout.
  void wait_for_place(std::uint64_t place, const Deadline& deadline);
  Deadline deadline() const {
    return state_.deadline();
  }
  /// Returns the failure. Clears it, unless commands were dropped that were
  /// enqueued after the last drain() began: their caller must see it, too.
  std::optional<Error> take_failure();
  /// Clears the failure of the stream if it equals `reported`.
  void forget_failure(const Error& reported);
  /// Waits until no command runs, at most until `deadline`.
  void settle(Point::Clock::time_point deadline);
  /// Drops queued commands at exit.
  void abandon();

  /// Refuses more work and ends the worker once the queue is empty. Returns
  /// true if it has ended already.
  bool retire();
  void reuse();
  /// Ends the worker if the stream was idle since the last call.
  void end_idle_worker() noexcept;

  // For the scheduler.
  Next next() const override;
  bool run_chosen(StallCheck check) override;
  void release_worker() override;

 private:
  using Lock = std::unique_lock<std::mutex>;

  void check_accepts(Epoch epoch) const;
  void submit(Entry&& entry);
  void run_entry(Entry&& entry);
  void acquire_executor(Lock& lock, Epoch epoch);
  void push(Lock& lock, Entry&& entry);
  void wait_for_room(Lock& lock, const Entry& entry);
  void note_launch_of_kernel(bool is_work);
  // The most commands that one turn begins on a lane with a queue.
  static constexpr std::uint64_t kMostInTurn = 1024;
  /// Executes the next entry, or up to `most` entries that the lane queues.
  void execute_next(Lock& lock, std::uint64_t most);
  void execute_queued(Lock& lock, std::uint64_t most);
  bool queues_next() const noexcept;
  void keep_failure(Error error, bool dropped);
  void finish_turn();
  void wake_waiting();
  void pass_turn();
  void drop_queue();
  template <typename Done>
  void wait_until(
      Lock& lock,
      const Done& done,
      std::uint64_t completed,
      const Deadline& deadline);
  void wait_scheduled(
      Lock& lock,
      const std::function<bool()>& done,
      std::uint64_t completed,
      const Deadline& deadline);
  bool run_scheduled(Lock& lock);
  [[noreturn]] void throw_timeout(
      std::uint64_t completed,
      const Deadline& deadline) const;
  // The worker (workers.cpp).
  bool worker_may_run() const noexcept {
    return !queue_.empty() && (chosen_ || schedule::lets_workers_run());
  }
  void start_worker();
  /// Called with the stream locked.
  void wake_worker(const Lock& lock);
  void work();
  void wait_for_work(Lock& lock);
  std::shared_ptr<Capture> capture_locked();
  void leave_capture_locked();
  bool add_to_capture(Graph::Node& node, Epoch epoch);
  bool wait_in_capture(const Point& point, Epoch epoch);
  bool idle_locked() const noexcept {
    return queue_.empty() && !busy_;
  }

  const int device_;
  const int number_;
  std::atomic<int> priority_; // a stale handle may read it
  DeviceState& state_;
  Runner runner_;

  mutable std::mutex mutex_;
  std::condition_variable work_; // for the worker: a command can start
  std::condition_variable done_; // for waiting threads: a turn ended
  std::deque<Entry> queue_;
  std::vector<Entry> dropped_; // at exit; never released
  bool busy_ = false;          // an executor is at work
  bool has_worker_ = false;
  bool worker_sleeps_ = false;
  bool worker_ends_ = false;        // unless there is work when it wakes
  bool chosen_ = false;             // the worker runs the next entry
  const Stream* awaited_ = nullptr; // by the entry that a thread runs
  Spin spin_;
  std::uint64_t completed_at_last_look_ = 0; // of end_idle_worker()
  bool retired_ = false;
  static constexpr std::uint64_t kNobody = ~std::uint64_t{0};
  std::uint64_t wake_at_ = kNobody; // a thread waits for this count
  // Changed only under the lock. Equal when the stream is idle.
  std::atomic<std::uint64_t> enqueued_{0};
  std::atomic<std::uint64_t> completed_{0};
  std::uint64_t launches_of_its_kernels_ = 0; // on the stream itself
  std::atomic<bool> captured_{false};         // changed under the lock
  std::shared_ptr<Capture> capture_;          // may be one that was ended
  std::size_t branch_ = 0;                    // of it
  KeptFailure failure_;
};

} // namespace openreg
