// SPDX-License-Identifier: BSD-3-Clause
// Workers, the entries that a schedule makes them run, and the watcher that
// ends idle ones.
#include "stream/workers.h"

#include "base/process.h"
#include "base/system_thread.h"
#include "platform/thread.h"
#include "stream/stream.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace openreg {
namespace workers {
namespace {

// A worker that was idle between two checks ends.
constexpr std::chrono::milliseconds kBetweenLooks{500};

struct Workers {
  std::mutex mutex; // locked within that of a stream
  std::vector<Stream*> streams;
  bool watched = false;
};

Workers& all() {
  static auto* value = new Workers; // the watcher may outlive the statics
  return *value;
}

void watch() {
  Workers& workers = all();
  for (;;) {
    std::this_thread::sleep_for(kBetweenLooks);
    const std::lock_guard lock(workers.mutex);
    if (workers.streams.empty()) {
      workers.watched = false;
      return;
    }
    for (Stream* stream : workers.streams) {
      stream->end_idle_worker();
    }
  }
}

} // namespace

void add(Stream& stream) {
  Workers& workers = all();
  const std::lock_guard lock(workers.mutex);
  workers.streams.push_back(&stream);
  if (!workers.watched) {
    try {
      start_thread(watch);
      workers.watched = true;
    } catch (...) {
      // If no thread can be started, idle workers stay until the next attempt.
    }
  }
}

void remove(Stream& stream) noexcept {
  Workers& workers = all();
  const std::lock_guard lock(workers.mutex);
  workers.streams.erase(
      std::find(workers.streams.begin(), workers.streams.end(), &stream));
}

std::size_t count() {
  Workers& workers = all();
  const std::lock_guard lock(workers.mutex);
  return workers.streams.size();
}

} // namespace workers

void Stream::start_worker() {
  workers::add(*this);
  try {
    start_thread([this] { work(); });
    has_worker_ = true;
  } catch (const std::system_error& error) {
    workers::remove(*this);
    throw Failure(
        orErrorUnknown,
        std::string("cannot start a thread for the stream: ") + error.what());
  } catch (...) {
    workers::remove(*this);
    throw;
  }
}

void Stream::work() {
  Lock lock(mutex_);
  for (;;) {
    wait_for_work(lock);
    if (queue_.empty() || process::exiting()) {
      drop_queue();
      has_worker_ = false;
      workers::remove(*this);
      lock.unlock();
      if (process::exiting()) {
        // The thread_local variables of this thread may use destroyed objects.
        platform::sleep_forever();
      }
      return;
    }
    const bool one = std::exchange(chosen_, false);
    execute_next(lock, one ? 1 : kMostInTurn);
  }
}

/// Returns when the worker has work or must end.
void Stream::wait_for_work(Lock& lock) {
  const bool idle = queue_.empty() && !retired_;
  const auto start = Spin::Clock::now();
  if (idle) {
    spin_.wait(lock, enqueued_, enqueued_ + 1);
  }
  worker_sleeps_ = true;
  work_.wait(lock, [this] {
    return !busy_ &&
        (queue_.empty() ? retired_ || worker_ends_ : worker_may_run());
  });
  worker_sleeps_ = worker_ends_ = false;
  if (idle) {
    spin_.note_gap(start);
  }
}

bool Stream::run_chosen(StallCheck check) {
  Lock lock(mutex_);
  if (busy_ || queue_.empty() || process::exiting()) {
    return false;
  }
  const CancellationDeferred deferred;
  const std::uint64_t target = completed_ + 1;
  wake_worker(lock);
  chosen_ = true; // the worker looks when this thread waits
  while (completed_ < target) {
    wake_at_ = std::min(wake_at_, target);
    done_.wait_for(lock, StallCheck::kLook);
    schedule::note_progress();
    if (completed_ < target && (check.stalled() || process::exiting())) {
      return false;
    }
  }
  return true;
}

void Stream::release_worker() {
  Lock lock(mutex_);
  if (!queue_.empty() && !process::exiting()) {
    wake_worker(lock);
  }
}

void Stream::wake_worker(const Lock&) {
  if (!has_worker_) {
    start_worker();
  } else if (worker_sleeps_) {
    work_.notify_one();
  }
}

void Stream::end_idle_worker() noexcept {
  const Lock lock(mutex_, std::try_to_lock);
  if (!lock) {
    return; // it is in use
  }
  if (worker_sleeps_ && idle_locked() &&
      completed_ == completed_at_last_look_) {
    worker_ends_ = true;
    work_.notify_one();
  }
  completed_at_last_look_ = completed_;
}

} // namespace openreg
