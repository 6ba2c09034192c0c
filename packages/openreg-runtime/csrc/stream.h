// SPDX-License-Identifier: BSD-3-Clause
// Streams: ordered queues of commands.
//
// One thread at a time, the *executor*, runs the commands of a stream: its
// worker, which starts with the first enqueued command, or a thread that waits
// for the stream and helps. A blocking launch on an idle stream therefore costs
// two uncontended locks and no thread switch.
//
// Errors: a command that throws leaves its error on the stream; the next call
// that synchronizes with the stream returns and forgets it.
#pragma once

#include "backend.h"
#include "error.h"
#include "event.h"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <variant>

namespace openreg {

class Stream {
 public:
  Stream(int device, int priority, Backend& backend)
      : device_(device), priority_(priority), backend_(backend) {}

  int device() const noexcept {
    return device_;
  }
  int priority() const noexcept {
    return priority_;
  }
  void set_priority(int priority) noexcept {
    priority_ = priority;
  }

  void enqueue(Command command);
  /// Runs `command` in order on the calling thread. Throws its failure.
  void run(const Command& command);
  void record(std::shared_ptr<Point> point);
  void wait(std::shared_ptr<Point> point);

  bool idle() const;
  /// The failure that a command left, which stays.
  std::optional<Error> failure() const;
  /// Throws orErrorNotPermitted if this thread runs a command of the stream.
  void check_may_wait() const;
  /// Waits for what is enqueued now; leaves a failure where it is.
  void drain();
  /// Returns and forgets the failure.
  std::optional<Error> take_failure();
  /// Waits until no command runs, at most until `deadline`.
  void settle(Point::Clock::time_point deadline);

  /// Lets the worker end once the queue is empty; true if that is so already.
  bool retire();
  void reuse();

 private:
  struct Record {
    std::shared_ptr<Point> point;
  };
  struct Wait {
    std::shared_ptr<Point> point;
  };
  using Entry = std::variant<Command, Record, Wait>;
  using Lock = std::unique_lock<std::mutex>;

  void push(Lock& lock, Entry entry);
  void start_worker(Lock& lock);
  void work();
  void execute_next(Lock& lock);
  void execute(const Entry& entry);
  void finish_turn();
  void wait_until(Lock& lock, std::uint64_t completed);
  bool idle_locked() const noexcept {
    return queue_.empty() && !busy_;
  }

  const int device_;
  int priority_;
  Backend& backend_;

  mutable std::mutex mutex_;
  std::condition_variable work_; // for the worker: a command can start
  std::condition_variable done_; // for waiting threads: a turn ended
  std::deque<Entry> queue_;
  bool busy_ = false; // an executor is at work
  bool has_worker_ = false;
  bool worker_sleeps_ = false;
  bool retired_ = false;
  int waiting_ = 0;
  std::uint64_t enqueued_ = 0;
  std::uint64_t completed_ = 0;
  std::optional<Error> failure_;
};

/// The stream behind a handle; null is the current device's default stream.
Stream& stream_of(orStream_t stream);
Event& event_of(orEvent_t event);

} // namespace openreg
