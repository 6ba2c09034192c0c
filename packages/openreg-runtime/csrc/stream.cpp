// SPDX-License-Identifier: BSD-3-Clause
// How a stream runs its commands.
#include "stream.h"

#include "config.h"
#include "process.h"
#include "runtime.h"

#include <atomic>
#include <chrono>
#include <string>
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

/// What a command sees of the thread that happens to run it: its device is the
/// current one, and there is no error yet. The thread gets its own back.
class RunningScope {
 public:
  explicit RunningScope(const Stream* stream)
      : entry_{stream, t_running},
        device_(exchange_current_device(stream->device())),
        error_(exchange_last_error({})) {
    t_running = &entry_;
  }
  RunningScope(const RunningScope&) = delete;
  RunningScope& operator=(const RunningScope&) = delete;
  ~RunningScope() {
    t_running = entry_.outer;
    exchange_current_device(device_);
    exchange_last_error(std::move(error_));
  }

 private:
  Running entry_;
  const int device_;
  Error error_;
};

std::atomic<std::size_t> g_workers{0};

/// The argument block of an accepted launch goes with its entry.
template <typename Action>
void adopt(Action& action) {
  if (auto* command = std::get_if<Command>(&action)) {
    if (auto* launch = std::get_if<Launch>(command)) {
      launch->adopt();
    }
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

const Stream* running_stream() noexcept {
  return t_running != nullptr ? t_running->stream : nullptr;
}

std::size_t worker_count() noexcept {
  return g_workers;
}

Stream::Entry Stream::entry_of(Command command) const {
  const auto site =
      std::holds_alternative<Launch>(command) ? orFaultLaunch : orFaultCopy;
  Entry entry{std::move(command), nullptr};
  if (auto hit = fault_injection::next(site, device_)) {
    entry.hit = std::make_unique<fault_injection::Hit>(std::move(*hit));
  }
  return entry;
}

void Stream::enqueue(Command command) {
  check_usable();
  submit(entry_of(std::move(command)));
}

void Stream::run(Command command) {
  check_usable();
  run_entry(entry_of(std::move(command)));
}

void Stream::call(HostCall function) {
  check_usable();
  submit({function, nullptr});
}

void Stream::submit(Entry entry) {
  if (config().launch_blocking) {
    run_entry(std::move(entry));
    return;
  }
  Lock lock(mutex_);
  push(lock, std::move(entry));
}

void Stream::run_entry(Entry entry) {
  Lock lock(mutex_);
  const bool nested = running_here(this);
  if (!nested) {
    const Deadline until = deadline();
    while (!idle_locked()) {
      wait_until(lock, enqueued_, until);
    }
    busy_ = true;
    ++enqueued_;
  }
  lock.unlock();
  std::optional<Error> error;
  {
    const RunningScope scope(this);
    error = execute(entry);
    if (!error && state_.failed()) {
      error = state_.failure(); // it may have been dropped
    }
    if (!error) {
      adopt(entry.action);
      const Entry done = std::move(entry); // its arguments go within the turn
    }
  }
  if (!nested) {
    lock.lock();
    finish_turn();
    lock.unlock();
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
  push(lock, {Record{std::move(point)}, nullptr});
}

void Stream::wait(std::shared_ptr<Point> point) {
  if (!point || point->reached()) {
    return;
  }
  Lock lock(mutex_);
  push(lock, {Wait{std::move(point)}, nullptr});
}

bool Stream::idle() const {
  const std::lock_guard lock(mutex_);
  return idle_locked();
}

std::pair<std::uint64_t, std::uint64_t> Stream::progress() const {
  const std::lock_guard lock(mutex_);
  return {enqueued_, completed_};
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

void Stream::drain(const Deadline& deadline) {
  check_may_wait();
  Lock lock(mutex_);
  wait_until(lock, enqueued_, deadline);
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
  adopt(queue_.back().action); // nothing can fail any more
}

void Stream::start_worker(Lock&) {
  try {
    std::thread([this] { work(); }).detach();
    has_worker_ = true;
    ++g_workers;
  } catch (const std::system_error& error) {
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
      --g_workers;
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
    error = execute(entry);
  }
  lock.lock();
  if (error && !failure_ && !DeviceState::sticks(error->code)) {
    failure_ = std::move(error);
  }
  finish_turn();
}

std::optional<Error> Stream::execute(const Entry& entry) {
  try {
    if (entry.hit) {
      entry.hit->apply(&state_);
    }
    return act(entry.action);
  } catch (...) {
    Error error = kernel_error();
    if (DeviceState::sticks(error.code)) {
      state_.fail(error);
    }
    return error;
  }
}

/// Returns the failure of the device if that is why the action is dropped.
std::optional<Error> Stream::act(const Action& action) {
  if (const auto* record = std::get_if<Record>(&action)) {
    record->point->reach(); // also on a failed device: nobody waits for ever
    return std::nullopt;
  }
  if (state_.failed()) {
    if (auto failure = state_.failure()) {
      return failure;
    }
  }
  if (const auto* command = std::get_if<Command>(&action)) {
    backend_.execute(*command);
  } else if (const auto* host = std::get_if<HostCall>(&action)) {
    host->function(host->data);
  } else {
    wait_for(*std::get<Wait>(action).point);
  }
  return std::nullopt;
}

void Stream::wait_for(Point& point) const {
  // In slices: a device that is lost meanwhile waits for nobody.
  constexpr std::chrono::milliseconds kSlice{20};
  while (!point.wait_until(Point::Clock::now() + kSlice)) {
    if (state_.failed()) {
      return;
    }
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

void Stream::wait_until(
    Lock& lock,
    std::uint64_t completed,
    const Deadline& deadline) {
  while (completed_ < completed) {
    if (!deadline.at && !busy_ && !queue_.empty()) {
      execute_next(lock); // with a limit this could take too long
      continue;
    }
    bool late = false;
    ++waiting_;
    if (deadline.at) {
      late = done_.wait_until(lock, *deadline.at) == std::cv_status::timeout;
    } else {
      done_.wait(lock);
    }
    --waiting_;
    if (late && completed_ < completed) {
      throw Failure(
          orErrorTimeout,
          "a stream of device " + std::to_string(device_) + " still has " +
              std::to_string(completed - completed_) +
              " commands to do after " + std::to_string(deadline.limit) +
              " ms; they go on");
    }
  }
}

} // namespace openreg
