// SPDX-License-Identifier: BSD-3-Clause
// The execution of a stream's commands.
#include "stream/stream.h"

#include "base/process.h"
#include "base/system_thread.h"
#include "schedule/scheduler.h"
#include "settings/config.h"
#include "stream/capture.h"
#include "stream/wait_graph.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

namespace openreg {
namespace {

// The queue length at which further enqueues block. CUDA's limit is about a
// thousand.
constexpr std::size_t kMaxQueued = 16384;

} // namespace

void Stream::enqueue(Command command, Epoch epoch) {
  if (captured_) [[unlikely]] {
    Graph::Node node = std::move(command);
    if (add_to_capture(node, epoch)) {
      return;
    }
    command = std::get<Command>(std::move(node));
  }
  submit({std::move(command), epoch});
}

void Stream::run(Command command, Epoch epoch) {
  run_entry({std::move(command), epoch});
}

void Stream::call(HostCall function, Epoch epoch) {
  if (captured_) [[unlikely]] {
    Graph::Node node = function;
    if (add_to_capture(node, epoch)) {
      return;
    }
  }
  submit({function, epoch});
}

void Stream::replay(GraphRun run, Epoch epoch) {
  submit({std::move(run), epoch});
}

/// Called under the lock: a reset first fails the device and then waits for the
/// stream, so it finds every command accepted before.
void Stream::check_accepts(Epoch epoch) const {
  state_.check_since(epoch);
  if (retired_) {
    throw Failure(orErrorInvalidHandle, "stream was destroyed during the call");
  }
}

void Stream::submit(Entry&& entry) {
  static const bool blocking = config().launch_blocking;
  if (blocking) {
    run_entry(std::move(entry));
    return;
  }
  {
    Lock lock(mutex_);
    push(lock, std::move(entry));
  }
  if (schedule::is_on() && running_stream() == nullptr) [[unlikely]] {
    schedule::interleave();
  }
}

void Stream::run_entry(Entry&& entry) {
  const bool nested = running_stream() != nullptr && runs_here();
  if (nested) {
    check_may_run();
  } else {
    check_not_captured("a blocking command was called on a captured stream");
  }
  if (schedule::is_on() && running_stream() == nullptr) [[unlikely]] {
    schedule::interleave();
  }
  if (activity::is_on()) [[unlikely]] {
    runner_.begin_record(entry, nested);
  }
  Lock lock(mutex_);
  std::optional<Error> before;
  if (!nested) {
    acquire_executor(lock, entry.epoch);
    before = failure_.get();
  }
  lock.unlock();
  // Threads that wait for the command running here also wait for this stream.
  std::optional<WaitEdge> edge;
  if (running_stream() != nullptr) {
    edge.emplace(*this);
  }
  std::optional<Error> of_cleanup;
  std::optional<Error> error = [&] {
    const RunningScope scope(this, device_, /*part=*/true);
    auto failure = runner_.execute_in_call(entry, nested, before);
    if (!failure) {
      Runner::release(entry, of_cleanup); // within its turn
    }
    return failure;
  }();
  if (!nested || of_cleanup) {
    lock.lock();
    if (before) {
      failure_.forget(); // the caller learns of it
    }
    if (of_cleanup) {
      keep_failure(std::move(*of_cleanup), /*dropped=*/false);
    }
    if (!nested) {
      finish_turn();
    }
    lock.unlock();
  }
  if (error) {
    throw Failure(std::move(*error));
  }
}

/// Makes the calling thread the executor, after the present queue.
void Stream::acquire_executor(Lock& lock, Epoch epoch) {
  check_accepts(epoch);
  if (idle_locked()) {
    busy_ = true;
    ++enqueued_;
    state_.count_enqueued();
    return;
  }
  const std::uint64_t before = enqueued_;
  bool granted = false;
  queue_.push_back({GiveTurn{&granted}, epoch});
  ++enqueued_;
  state_.count_enqueued();
  try {
    wait_until(lock, [&granted] { return granted; }, before, deadline());
  } catch (...) {
    for (Entry& entry : queue_) {
      auto* turn = entry.as<GiveTurn>();
      if (turn != nullptr && turn->granted == &granted) {
        turn->granted = nullptr;
      }
    }
    throw;
  }
}

void Stream::record(std::shared_ptr<Point> point, Epoch epoch) {
  Lock lock(mutex_);
  if (!idle_locked()) {
    push(lock, {RecordPoint{std::move(point)}, epoch});
    return;
  }
  check_accepts(epoch);
  if (const auto& failure = failure_.get()) {
    point->fail(*failure);
  }
  lock.unlock();
  point->reach();
}

void Stream::forget_failure_in_order(Epoch epoch) {
  Lock lock(mutex_);
  if (idle_locked()) {
    check_accepts(epoch);
    failure_.forget();
  } else {
    push(lock, {ForgetFailure{}, epoch});
  }
}

void Stream::wait(std::shared_ptr<Point> point, Epoch epoch) {
  if (!point) {
    return;
  }
  if (wait_in_capture(*point, epoch) ||
      (point->reached() && point->failure() == nullptr)) {
    return;
  }
  Lock lock(mutex_);
  push(lock, {AwaitPoint{std::move(point)}, epoch});
}

bool Stream::idle() const {
  const auto [enqueued, completed] = progress();
  return enqueued == completed;
}

/// Lock-free, because each allocation calls it. Reads the completed count
/// first, so that it never exceeds the enqueued count.
std::pair<std::uint64_t, std::uint64_t> Stream::progress() const {
  const std::uint64_t completed = completed_;
  return {enqueued_, completed};
}

std::optional<Error> Stream::failure() const {
  if (!failure_.exists()) {
    return std::nullopt;
  }
  const std::lock_guard lock(mutex_);
  return failure_.get();
}

void Stream::check_may_wait() const {
  if (runs_here()) {
    throw Failure(
        orErrorNotPermitted, "a kernel cannot wait for its own stream");
  }
}

void Stream::drain(const Deadline& deadline) {
  check_may_wait();
  // For a reset, see check_accepts().
  if (idle() && !state_.failed() && !failure_.exists()) {
    return;
  }
  Lock lock(mutex_);
  std::uint64_t launches = 0;
  do { // repeats for work that its kernels have enqueued
    launches = launches_of_its_kernels_;
    const std::uint64_t target = enqueued_;
    wait_until(
        lock,
        [this, target] { return completed_ >= target; },
        target,
        deadline);
    failure_.note_drained(target);
  } while (launches != launches_of_its_kernels_);
}

void Stream::wait_for_place(std::uint64_t place, const Deadline& deadline) {
  check_may_wait();
  Lock lock(mutex_);
  wait_until(
      lock, [this, place] { return completed_ >= place; }, place, deadline);
}

std::optional<Error> Stream::take_failure() {
  if (!failure_.exists()) { // the usual case, on every synchronization
    return std::nullopt;
  }
  const std::lock_guard lock(mutex_);
  std::optional<Error> failure = failure_.get();
  failure_.forget_reported();
  return failure;
}

void Stream::forget_failure(const Error& reported) {
  const std::lock_guard lock(mutex_);
  const auto& failure = failure_.get();
  if (failure && failure->number == reported.number) {
    failure_.forget_reported();
  }
}

void Stream::settle(Point::Clock::time_point deadline) {
  if (is_under_way_here(*this)) {
    return; // the enclosing command outlives this call
  }
  Lock lock(mutex_);
  while (busy_) {
    wake_at_ = 0;
    if (done_.wait_until(lock, deadline) == std::cv_status::timeout) {
      return;
    }
  }
}

void Stream::abandon() {
  const std::lock_guard lock(mutex_);
  drop_queue();
}

bool Stream::retire() {
  const std::lock_guard lock(mutex_);
  retired_ = true;
  if (capture_) [[unlikely]] {
    capture_->invalidate("a captured stream was destroyed");
    leave_capture_locked();
  }
  if (worker_sleeps_) {
    work_.notify_one();
  }
  return !has_worker_ && idle_locked();
}

void Stream::reuse() {
  const std::lock_guard lock(mutex_);
  retired_ = false;
  failure_.forget();
}

void Stream::push(Lock& lock, Entry&& entry) {
  if (queue_.size() >= kMaxQueued) [[unlikely]] {
    wait_for_room(lock, entry);
  }
  check_accepts(entry.epoch);
  if (schedule::is_on()) [[unlikely]] {
    schedule::add(*this);
  } else if (!has_worker_ && !process::exiting()) {
    start_worker(); // first, because the count is not reverted
  }
  runner_.inject_failure(entry);
  if (activity::is_on()) [[unlikely]] {
    runner_.begin_record(entry, /*may_be_part=*/false);
  }
  const auto* record = entry.as<RecordPoint>();
  if (record != nullptr) {
    record->point->place(completed_, enqueued_ + 1);
  }
  const bool is_work = record == nullptr;
  queue_.push_back(std::move(entry));
  ++enqueued_;
  state_.count_enqueued();
  worker_ends_ = false;
  const bool wakes = worker_sleeps_ && !busy_ && worker_may_run();
  if (running_stream() != nullptr) {
    note_launch_of_kernel(is_work);
  }
  if (process::exiting()) {
    drop_queue();
  } else if (wakes) {
    lock.unlock(); // else the worker would wake up and wait for it
    work_.notify_one();
  }
}

/// Waits until the queue is no longer full. Kernels do not wait, because they
/// may block the work that must end first. Records, waits and forgets do not
/// wait either: they cost nothing, and callers may hold locks. Throws
/// orErrorTimeout.
void Stream::wait_for_room(Lock& lock, const Entry& entry) {
  if (entry.is_mark() || running_stream() != nullptr) {
    return;
  }
  const CancellationDeferred deferred;
  const Deadline limit = deadline();
  while (queue_.size() >= kMaxQueued && !process::exiting()) {
    wake_at_ = std::min(wake_at_, completed_ + 1);
    const bool scheduled = schedule::is_on();
    if (scheduled && run_scheduled(lock)) {
      continue;
    }
    if (!limit.at && scheduled) { // another stream may hold this one up
      done_.wait_for(lock, StallCheck::kLook);
    } else if (!limit.at) {
      done_.wait(lock);
    } else if (
        done_.wait_until(lock, *limit.at) == std::cv_status::timeout &&
        queue_.size() >= kMaxQueued) {
      throw Failure(
          orErrorTimeout,
          "a stream of device " + std::to_string(device_) + " still holds " +
              std::to_string(queue_.size()) +
              " commands, the most that a stream can hold, after " +
              std::to_string(limit.limit) + " ms");
    }
  }
}

/// Notes that the calling command has enqueued an entry on the stream, so that
/// waits for the device include it. Work may run before an event record,
/// because a late event delays other streams only briefly.
void Stream::note_launch_of_kernel(bool is_work) {
  state_.count_launch_of_kernel();
  if (note_enqueued_here(*this, is_work)) {
    ++launches_of_its_kernels_;
  }
}

/// Whether the next command may begin before earlier ones have finished.
bool Stream::queues_next() const noexcept {
  return !queue_.empty() && queue_.front().hit == nullptr &&
      !failure_.exists() && runner_.queues(queue_.front());
}

/// Begins commands while earlier ones run, to keep the lane busy.
void Stream::execute_queued(Lock& lock, std::uint64_t most) {
  busy_ = true;
  struct Begun {
    Entry entry;
    std::optional<Error> error; // set if it failed to begin
  };
  std::deque<Begun> begun;    // the lane points to its elements
  std::optional<Error> first; // failure; later commands are dropped
  std::uint64_t room = std::min(most, kMostInTurn);
  const auto may_begin = [&] { return room > 0 && !first && queues_next(); };
  const RunningScope scope(this, device_, /*part=*/false, /*pipelined=*/true);
  do {
    for (; may_begin(); --room) {
      Begun& next = begun.emplace_back(std::move(queue_.front()), std::nullopt);
      queue_.pop_front();
      lock.unlock();
      next.error = runner_.begin(next.entry);
      lock.lock();
    }
    lock.unlock();
    Begun& oldest = begun.front();
    runner_.finish(oldest.entry, oldest.error);
    lock.lock();
    if (oldest.error) {
      const bool dropped = first.has_value();
      if (!dropped) {
        first = std::move(oldest.error);
        number_error(*first);
      }
      keep_failure(*first, dropped);
    }
    begun.pop_front();
    if (!begun.empty() || may_begin()) { // else finish_turn() counts it
      ++completed_;
      if (completed_ >= wake_at_) {
        wake_waiting();
      }
    }
  } while (!begun.empty() || may_begin());
}

void Stream::execute_next(Lock& lock, std::uint64_t most) {
  if (queues_next()) {
    execute_queued(lock, most);
    finish_turn();
    return;
  }
  busy_ = true;
  const std::optional<Error> before = failure_.get();
  std::optional<Error> error;
  std::shared_ptr<Point> recorded;
  bool forgets = false;
  {
    // Releases the argument block before the turn ends, so that waiting threads
    // find its resources freed. The cleanup must not wait either.
    const RunningScope scope(this, device_, /*part=*/false);
    const Entry entry = std::move(queue_.front());
    queue_.pop_front();
    if (const auto* wait = entry.as<AwaitPoint>()) {
      awaited_ = wait->point->stream();
    }
    lock.unlock();
    if (const auto* record = entry.as<RecordPoint>()) {
      recorded = record->point;
      runner_.stamp(*recorded, entry.epoch, before);
    } else if (entry.as<ForgetFailure>()) {
      forgets = true;
    } else {
      error = runner_.execute(entry, before);
    }
    runner_.end(entry, error);
  }
  lock.lock();
  if (forgets) {
    failure_.forget();
  } else if (error) {
    keep_failure(std::move(*error), /*dropped=*/before.has_value());
  }
  finish_turn();
  if (recorded) {
    recorded->reach(); // wakes waiting threads
  }
}

/// `dropped`: the command of this turn comes after the first failure.
void Stream::keep_failure(Error error, bool dropped) {
  failure_.keep(std::move(error), completed_ + 1, dropped);
}

void Stream::finish_turn() {
  busy_ = false;
  awaited_ = nullptr;
  ++completed_;
  pass_turn();
  if (completed_ >= wake_at_) {
    wake_waiting();
  }
  if (worker_sleeps_ && !busy_ && (!queue_.empty() || retired_)) {
    work_.notify_one();
  }
}

/// Threads that still have to wait set it again.
void Stream::wake_waiting() {
  if (wake_at_ != kNobody) {
    wake_at_ = kNobody;
    done_.notify_all();
  }
}

/// Makes the thread that waits at the front of the queue, if any, the executor.
void Stream::pass_turn() {
  while (!queue_.empty() && !busy_) {
    const auto* turn = queue_.front().as<GiveTurn>();
    if (turn == nullptr) {
      return;
    }
    if (turn->granted != nullptr) {
      *turn->granted = busy_ = true; // finish_turn() will count it
    } else {
      ++completed_;
    }
    queue_.pop_front();
  }
}

/// At exit the code of a kernel or of its cleanup may be unloaded, so neither
/// runs. Records are reached, so that no wait lasts forever.
void Stream::drop_queue() {
  for (Entry& entry : queue_) {
    if (entry.as<GiveTurn>()) {
      continue;
    }
    if (const auto* record = entry.as<RecordPoint>()) {
      record->point->reach();
    }
    dropped_.push_back(
        std::exchange(entry, Entry{GiveTurn{nullptr}, entry.epoch}));
  }
  pass_turn();
  wake_waiting();
}

void Stream::throw_timeout(std::uint64_t completed, const Deadline& deadline)
    const {
  const char* running = runner_.running();
  throw Failure(
      orErrorTimeout,
      "a stream of device " + std::to_string(device_) + " still has " +
          std::to_string(completed - completed_) + " pending commands after " +
          std::to_string(deadline.limit) + " ms" +
          (running ? std::string(" and runs ") + running : "") +
          "; they continue");
}

/// Waits until `done`, at most until `completed` entries have completed.
template <typename Done>
void Stream::wait_until(
    Lock& lock,
    const Done& done,
    std::uint64_t completed,
    const Deadline& deadline) {
  if (done()) {
    return;
  }
  if (schedule::is_on()) [[unlikely]] {
    wait_scheduled(lock, done, completed, deadline);
    return;
  }
  std::optional<WaitEdge> edge;
  if (running_stream() != nullptr) {
    edge.emplace(*this, completed);
  }
  bool spun = false;
  while (!done()) {
    const bool helps = !busy_ && !queue_.empty();
    if (helps && process::exiting()) {
      drop_queue();
      continue;
    }
    if (!spun && (!helps || deadline.at)) {
      spun = true;
      spin_.wait(lock, completed_, completed);
      continue;
    }
    const CancellationDeferred deferred; // neither a kernel nor a sleep ends it
    if (helps && !deadline.at) { // with a limit this could take too long
      execute_next(lock, std::max<std::uint64_t>(completed - completed_, 1));
      continue;
    }
    bool late = false;
    wake_at_ = std::min(wake_at_, completed);
    if (edge) {
      edge->check();
      auto end = Deadline::Clock::now() + WaitEdge::kCheckEvery;
      if (deadline.at && *deadline.at <= end) {
        end = *deadline.at;
        late = true;
      }
      late = done_.wait_until(lock, end) == std::cv_status::timeout && late;
    } else if (deadline.at) {
      late = done_.wait_until(lock, *deadline.at) == std::cv_status::timeout;
    } else {
      done_.wait(lock);
    }
    if (late && !done()) {
      throw_timeout(completed, deadline);
    }
  }
}

schedule::Queue::Next Stream::next() const {
  const Lock lock(mutex_);
  if (busy_) {
    return awaited_ == nullptr ? Next{State::kBusy}
                               : Next{State::kBlocked, awaited_};
  }
  if (queue_.empty()) {
    return {State::kEmpty};
  }
  if (const auto* wait = queue_.front().as<AwaitPoint>()) {
    const Point& point = *wait->point;
    if (point.stream() != nullptr && !point.reached()) {
      return {State::kBlocked, point.stream()};
    }
  }
  return {State::kReady};
}

/// As wait_until(): runs the entries that the schedule chooses, until `done`.
void Stream::wait_scheduled(
    Lock& lock,
    const std::function<bool()>& done,
    std::uint64_t completed,
    const Deadline& deadline) {
  std::optional<WaitEdge> edge; // for other kernels that wait
  if (running_stream() != nullptr) {
    edge.emplace(*this, completed);
  }
  schedule::note_wait();
  schedule::add(*this); // a submission may have begun before the schedule
  while (!done()) {
    if (!busy_ && !queue_.empty() && process::exiting()) {
      drop_queue();
      continue;
    }
    const bool late = deadline.at && Deadline::Clock::now() >= *deadline.at;
    if (late) {
      throw_timeout(completed, deadline);
    }
    if (run_scheduled(lock) || done()) {
      continue;
    }
    if (edge) {
      edge->check();
    }
    const CancellationDeferred deferred;
    wake_at_ = std::min(wake_at_, completed);
    done_.wait_for(lock, StallCheck::kLook);
  }
}

/// Runs an entry for a wait for this stream. Returns whether one has run.
bool Stream::run_scheduled(Lock& lock) {
  struct Unlocked {
    explicit Unlocked(Lock& each) : lock(each) {
      lock.unlock();
    }
    ~Unlocked() {
      lock.lock();
    }
    Lock& lock;
  };
  const Unlocked scope(lock); // also if it throws
  return schedule::run_next(*this);
}

} // namespace openreg
