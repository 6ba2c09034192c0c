// SPDX-License-Identifier: BSD-3-Clause
// How a stream runs its commands.
#include "stream.h"

#include "config.h"
#include "process.h"

#include <thread>
#include <utility>

namespace openreg {
namespace {

// The streams whose commands this thread is running, innermost first: a kernel
// may launch on its own stream, but can not wait for it.
struct Running {
  const Stream* stream;
  const Running* outer;
};
thread_local const Running* t_running = nullptr;

bool running_here(const Stream* stream) {
  for (const Running* entry = t_running; entry; entry = entry->outer) {
    if (entry->stream == stream) {
      return true;
    }
  }
  return false;
}

class RunningScope {
 public:
  explicit RunningScope(const Stream* stream) : entry_{stream, t_running} {
    t_running = &entry_;
  }
  RunningScope(const RunningScope&) = delete;
  RunningScope& operator=(const RunningScope&) = delete;
  ~RunningScope() {
    t_running = entry_.outer;
  }

 private:
  Running entry_;
};

/// Leaves the argument block of a failed launch to the caller.
void disown(Command& command) {
  if (auto* launch = std::get_if<Launch>(&command)) {
    launch->disown();
  }
}

/// The current exception as the error of a kernel.
Error kernel_error() {
  try {
    throw;
  } catch (const Failure& failure) {
    return failure.error();
  } catch (const std::exception& exception) {
    return {
        orErrorLaunchFailure,
        std::string("a kernel threw an exception: ") + exception.what()};
  } catch (...) {
    return {
        orErrorLaunchFailure, "a kernel threw something that is no exception"};
  }
}

} // namespace

void Stream::enqueue(Command command) {
  if (config().launch_blocking) {
    try {
      run(command);
    } catch (...) {
      disown(command);
      throw;
    }
    return;
  }
  Lock lock(mutex_);
  push(lock, std::move(command));
}

void Stream::run(const Command& command) {
  Lock lock(mutex_);
  const bool nested = running_here(this);
  if (!nested) {
    while (!idle_locked()) {
      wait_until(lock, enqueued_);
    }
    busy_ = true;
    ++enqueued_;
  }
  lock.unlock();
  std::optional<Error> error;
  try {
    const RunningScope scope(this);
    backend_.execute(command);
  } catch (...) {
    error = kernel_error();
  }
  if (!nested) {
    lock.lock();
    finish_turn();
  }
  if (error) {
    throw Failure(std::move(*error));
  }
}

void Stream::record(std::shared_ptr<Point> point) {
  Lock lock(mutex_);
  if (idle_locked()) {
    lock.unlock();
    point->reach();
    return;
  }
  push(lock, Record{std::move(point)});
}

void Stream::wait(std::shared_ptr<Point> point) {
  if (!point || point->reached()) {
    return;
  }
  Lock lock(mutex_);
  push(lock, Wait{std::move(point)});
}

bool Stream::idle() const {
  const std::lock_guard lock(mutex_);
  return idle_locked();
}

std::optional<Error> Stream::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void Stream::check_may_wait() const {
  if (running_here(this)) {
    throw Failure(
        orErrorNotPermitted, "a kernel can not wait for its own stream");
  }
}

void Stream::drain() {
  check_may_wait();
  Lock lock(mutex_);
  wait_until(lock, enqueued_);
}

std::optional<Error> Stream::take_failure() {
  const std::lock_guard lock(mutex_);
  return std::exchange(failure_, std::nullopt);
}

void Stream::settle(Point::Clock::time_point deadline) {
  if (running_here(this)) {
    return;
  }
  Lock lock(mutex_);
  ++waiting_;
  done_.wait_until(lock, deadline, [this] { return !busy_; });
  --waiting_;
}

bool Stream::retire() {
  const std::lock_guard lock(mutex_);
  retired_ = true;
  if (worker_sleeps_) {
    work_.notify_one();
  }
  return !has_worker_ && idle_locked();
}

void Stream::reuse() {
  const std::lock_guard lock(mutex_);
  retired_ = false;
  failure_.reset();
}

void Stream::push(Lock& lock, Entry entry) {
  queue_.push_back(std::move(entry));
  ++enqueued_;
  if (!has_worker_) {
    start_worker(lock);
  } else if (worker_sleeps_ && !busy_) {
    work_.notify_one();
  }
}

void Stream::start_worker(Lock&) {
  try {
    std::thread([this] { work(); }).detach();
    has_worker_ = true;
  } catch (const std::system_error& error) {
    if (auto* command = std::get_if<Command>(&queue_.back())) {
      disown(*command);
    }
    queue_.pop_back();
    --enqueued_;
    throw Failure(
        orErrorUnknown,
        std::string("no thread for the stream: ") + error.what());
  }
}

void Stream::work() {
  Lock lock(mutex_);
  for (;;) {
    worker_sleeps_ = true;
    work_.wait(
        lock, [this] { return !busy_ && (!queue_.empty() || retired_); });
    worker_sleeps_ = false;
    if (queue_.empty() || process::exiting()) {
      has_worker_ = false;
      return;
    }
    execute_next(lock);
  }
}

void Stream::execute_next(Lock& lock) {
  busy_ = true;
  std::optional<Error> error;
  {
    // The argument block goes before the turn ends: whoever waited finds all
    // that it held released. What releases it may not wait either.
    const RunningScope scope(this);
    const Entry entry = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    try {
      execute(entry);
    } catch (...) {
      error = kernel_error();
    }
  }
  lock.lock();
  if (error && !failure_) {
    failure_ = std::move(error);
  }
  finish_turn();
}

void Stream::execute(const Entry& entry) {
  if (const auto* command = std::get_if<Command>(&entry)) {
    backend_.execute(*command);
  } else if (const auto* record = std::get_if<Record>(&entry)) {
    record->point->reach();
  } else {
    std::get<Wait>(entry).point->wait();
  }
}

void Stream::finish_turn() {
  busy_ = false;
  ++completed_;
  if (waiting_ > 0) {
    done_.notify_all();
  }
  if (worker_sleeps_ && (!queue_.empty() || retired_)) {
    work_.notify_one();
  }
}

void Stream::wait_until(Lock& lock, std::uint64_t completed) {
  while (completed_ < completed) {
    if (!busy_ && !queue_.empty()) {
      execute_next(lock);
    } else {
      ++waiting_;
      done_.wait(lock);
      --waiting_;
    }
  }
}

} // namespace openreg
