// SPDX-License-Identifier: BSD-3-Clause
// Streams: ordered queues of commands.
//
// One thread at a time, the *executor*, runs the commands of a stream: its
// worker, which starts with the first enqueued command, or a thread that waits
// for the stream and helps. A blocking launch on an idle stream therefore costs
// two uncontended locks and no thread switch. A call that runs its command on
// its own thread queues for the role too, so it waits for earlier work only.
// A worker without work, and a thread that waits, spin for a moment, for to
// wake one costs more than a small kernel. A worker spins for longer while
// commands come in quick succession. One that has nothing to do for about a
// second ends, so that an unused stream holds no thread.
//
// A command may use its own stream. What it runs there blocking is a part of
// it; what it enqueues comes after it, and from then on it can run nothing
// there that would have to come later still.
//
// Errors: a command that throws leaves its error on the stream, which drops its
// commands until a call that waits for the stream has returned the error. An
// event that is recorded behind the error keeps it, and streams that wait for
// the event fail with it: nothing is computed from the results of a command
// that failed. An error that sticks goes to the device instead, whose streams
// then drop their commands. A command belongs to the epoch of the device in
// which its call was checked: after a reset it is refused, or dropped.
#pragma once

#include "backend/backend.h"
#include "base/device_state.h"
#include "base/error.h"
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
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace openreg {

class Stream {
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
  /// Among the streams of the device, as records name it.
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

  /// As DeviceState::check().
  Epoch check_usable() const {
    return state_.check();
  }
  void check_usable_since(Epoch epoch) const {
    state_.check_since(epoch);
  }
  // What follows throws as DeviceState::check_since(), and
  // orErrorInvalidHandle if the stream was retired since it was looked up.
  void enqueue(Command command, Epoch epoch);
  /// Runs `command` in order on the calling thread. Throws its failure, and
  /// orErrorTimeout.
  void run(Command command, Epoch epoch);
  void call(HostCall function, Epoch epoch);
  void record(std::shared_ptr<Point> point, Epoch epoch);
  void wait(std::shared_ptr<Point> point, Epoch epoch);
  /// Runs the commands one after another; each that fails leaves its failure.
  void replay(GraphRun run, Epoch epoch);

  // Captures (capture.cpp). A stream that is captured hands what it is given to
  // the capture, but for what its own commands call.
  /// Throws orErrorInvalidValue if it is captured already.
  void begin_capture(Epoch epoch, orStreamCaptureMode mode);
  /// Throws as orStreamEndCapture().
  std::shared_ptr<const Graph> end_capture();
  /// The capture that it belongs to, or null.
  std::shared_ptr<Capture> capture();
  /// Fails the capture, if there is one, and throws
  /// orErrorStreamCaptureUnsupported: `what` cannot be captured.
  void check_not_captured(const char* what);
  /// What a record makes of a captured stream; null if it is not captured.
  std::shared_ptr<Point> record_in_capture(Epoch epoch);

  bool idle() const;
  /// How many commands were enqueued, and how many of them are completed.
  std::pair<std::uint64_t, std::uint64_t> progress() const;
  /// The failure that a command left, which stays.
  std::optional<Error> failure() const;
  /// Forgets that failure when the stream comes to this: events have passed it
  /// on to streams that report it.
  void forget_failure_in_order(Epoch epoch);
  /// True if this thread runs a command of the stream, also as a part of what
  /// it runs now.
  bool runs_here() const noexcept {
    return openreg::runs_here(*this);
  }
  /// Throws orErrorNotPermitted if so.
  void check_may_wait() const;
  /// Throws orErrorNotPermitted if such a command has enqueued more work, which
  /// what it runs now would overtake.
  void check_may_run() const {
    check_may_run_here(*this);
  }
  /// Waits for what is enqueued now; leaves a failure where it is. Throws
  /// orErrorTimeout.
  void drain(const Deadline& deadline);
  /// Waits until so many commands are completed, which were enqueued. Throws
  /// orErrorTimeout.
  void wait_for_place(std::uint64_t place, const Deadline& deadline);
  Deadline deadline() const {
    return state_.deadline();
  }
  /// Returns the failure, and forgets it unless commands that were enqueued
  /// after the last drain() began have been dropped: their caller has to learn
  /// of it too.
  std::optional<Error> take_failure();
  /// Forgets the failure of the stream if it equals `reported`.
  void forget_failure(const Error& reported);
  /// Waits until no command runs, at most until `deadline`.
  void settle(Point::Clock::time_point deadline);
  /// Drops what is queued, at exit.
  void abandon();

  /// Refuses more work and lets the worker end once the queue is empty; true if
  /// that is so already.
  bool retire();
  void reuse();
  /// Ends the worker if the stream was idle since the last such call.
  void end_idle_worker() noexcept;

 private:
  using Lock = std::unique_lock<std::mutex>;

  void check_accepts(Epoch epoch) const;
  void submit(Entry&& entry);
  void run_entry(Entry&& entry);
  void acquire_executor(Lock& lock, Epoch epoch);
  void push(Lock& lock, Entry&& entry);
  void wait_for_room(Lock& lock, const Entry& entry);
  void note_launch_of_kernel(bool is_work);
  // Commands that one turn begins on a lane that takes several at a time.
  static constexpr std::uint64_t kMostInTurn = 1024;
  /// Executes the next entry, or up to `most` that the lane takes at a time.
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
  // The worker (workers.cpp).
  void start_worker();
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
  std::vector<Entry> dropped_; // at exit: what they hold stays
  bool busy_ = false;          // an executor is at work
  bool has_worker_ = false;
  bool worker_sleeps_ = false;
  bool worker_ends_ = false; // unless there is work when it wakes
  Spin spin_;
  std::uint64_t completed_at_last_look_ = 0; // of end_idle_worker()
  bool retired_ = false;
  static constexpr std::uint64_t kNobody = ~std::uint64_t{0};
  std::uint64_t wake_at_ = kNobody; // threads wait for so many completed
  // Changed under the lock only. They are equal when the stream is idle.
  std::atomic<std::uint64_t> enqueued_{0};
  std::atomic<std::uint64_t> completed_{0};
  std::uint64_t launches_of_its_kernels_ = 0; // on the stream itself
  std::atomic<bool> captured_{false};         // changed under the lock
  std::shared_ptr<Capture> capture_;          // may be one that was ended
  std::size_t branch_ = 0;                    // of it
  KeptFailure failure_;
};

} // namespace openreg
