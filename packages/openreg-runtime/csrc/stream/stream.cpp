// SPDX-License-Identifier: BSD-3-Clause
// How a stream runs its commands.
#include "stream/stream.h"

#include "base/device_number.h"
#include "base/process.h"
#include "base/system_thread.h"
#include "base/thread_local.h"
#include "settings/config.h"
#include "stream/capture.h"
#include "stream/wait_graph.h"
#include "stream/workers.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>

namespace openreg {
namespace {

// The streams whose commands this thread is running, innermost first: a kernel
// may launch on its own stream, but cannot wait for it.
struct Running {
  const Stream* stream;
  bool part; // of the outer command, which runs it; or it only waits meanwhile
  Running* outer;
  bool enqueued = false;  // work on the same stream, which runs later
  bool pipelined = false; // later commands of the stream may have begun
  activity::Ticket* ticket = nullptr; // if the command is recorded
};
OPENREG_THREAD_LOCAL Running* t_running = nullptr;

/// The commands that the innermost one is a part of, itself included, end here.
Running* outer_of(const Running& running) {
  return running.part ? running.outer : nullptr;
}

// Commands that a stream holds before it lets those who enqueue more wait. CUDA
// has such a limit too, of about a thousand.
constexpr std::size_t kMaxQueued = 16384;

// Commands that one turn begins on a lane that takes several at a time.
constexpr std::uint64_t kMostInTurn = 1024;

/// What a command sees of the thread that happens to run it: its device is the
/// current one, and there is no error yet. The thread gets its own back.
class RunningScope {
 public:
  RunningScope(const Stream* stream, bool part, bool pipelined = false)
      : entry_{stream, part, t_running, /*enqueued=*/false, pipelined},
        device_(exchange_current_device(stream->device())) {
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

// How long a thread spins before it sleeps: a wake costs about as much. It is
// the second if most gaps between the latest commands were short. With all
// cores taken a worker wakes late: its gaps are long, and it takes no core from
// others.
constexpr std::chrono::microseconds kSpin{10};
constexpr std::chrono::microseconds kLongSpin{60};
constexpr int kShortGaps = 8; // counted at most

/// Leaves the core to its other thread for a moment.
void relax_core() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

/// The current exception as the error of `what`.
Error error_of(const char* what) {
  try {
    throw;
  } catch (const Failure& failure) {
    return failure.error();
  } catch (const std::exception& exception) {
    return {
        orErrorLaunchFailure,
        std::string(what) + " threw an exception: " + text_of(exception)};
  } catch (...) {
    return {
        orErrorLaunchFailure,
        std::string(what) + " threw something that is no exception"};
  }
}

/// What an injected failure counts a command as.
orFailureSite site_of(const Command& command) {
  return std::holds_alternative<Launch>(command) ||
          std::holds_alternative<Message>(command)
      ? orFailureLaunch
      : orFailureCopy;
}

template <typename Action>
std::unique_ptr<activity::Ticket> ticket_of_work(
    const Action& action,
    const StreamPlace& place) {
  if (const auto* command = std::get_if<Command>(&action)) {
    return ticket_of(*command, place);
  }
  return std::holds_alternative<HostCall>(action)
      ? ticket_of(orActivityHostFunc, "host function", place)
      : nullptr;
}

/// A message on the stream of a kernel that runs is a part of its launch.
template <typename Action>
bool is_message(const Action& action) {
  const auto* command = std::get_if<Command>(&action);
  return command != nullptr && std::holds_alternative<Message>(*command);
}

/// Calls the cleanup of a launch, which finds the error of a launch that failed
/// or was dropped as the last error of the thread. An exception of the cleanup
/// is an error, if there is none yet.
template <typename Action>
void release(const Action& action, std::optional<Error>& error) {
  const Cleanup cleanup = cleanup_of(action);
  if (cleanup.function == nullptr) {
    return;
  }
  const LastErrorScope scope;
  if (error) {
    set_last_error("orLaunchKernel", error->code, error->message);
  }
  try {
    cleanup.function(cleanup.args);
  } catch (...) {
    if (!error) {
      error = error_of("the cleanup of a launch");
    }
  }
}

} // namespace

const Stream* running_stream() noexcept {
  return t_running != nullptr ? t_running->stream : nullptr;
}

void forget_record() noexcept {
  if (t_running != nullptr && t_running->ticket != nullptr) {
    t_running->ticket->forgotten = true;
  }
}

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

/// Under the lock, so that a reset, which waits for the stream after it has
/// failed the device, finds all that was accepted before.
void Stream::check_accepts(Epoch epoch) const {
  state_.check_since(epoch);
  if (retired_) {
    throw Failure(orErrorInvalidHandle, "stream was destroyed meanwhile");
  }
}

/// Counts the call, which only an injected failure can fail now.
void Stream::inject_failure(Entry& entry) const {
  const auto* command = std::get_if<Command>(&entry.action);
  if (command == nullptr) {
    return;
  }
  if (auto hit = failure_injection::next(site_of(*command), device_)) {
    entry.hit = std::make_unique<failure_injection::Hit>(std::move(*hit));
  }
}

/// What is recorded of an entry begins with the call that makes it.
/// It may be a part of what this thread runs.
void Stream::begin_record(Entry& entry, bool may_be_part) const {
  bool nested = false;
  const Running* each = may_be_part ? t_running : nullptr;
  for (; each != nullptr; each = outer_of(*each)) {
    nested |= each->stream == this && each->ticket != nullptr &&
        each->ticket->record.kind <= orActivityMemset;
  }
  const StreamPlace place{device_, number_, nested};
  if (std::holds_alternative<Wait>(entry.action)) {
    entry.ticket = ticket_of(orActivityWait, "wait for an event", place);
  } else if (auto* run = std::get_if<GraphRun>(&entry.action)) {
    const auto& nodes = run->graph->branches()[run->branch].nodes;
    for (std::size_t i = run->nodes.begin; i < run->nodes.end; ++i) {
      run->tickets.push_back(ticket_of_work(nodes[i], place));
    }
  } else {
    entry.ticket = ticket_of_work(entry.action, place);
  }
}

void Stream::submit(Entry&& entry) {
  static const bool blocking = config().launch_blocking;
  if (blocking) {
    run_entry(std::move(entry));
    return;
  }
  Lock lock(mutex_);
  push(lock, std::move(entry));
}

void Stream::run_entry(Entry&& entry) {
  const bool nested = runs_here();
  if (nested) {
    check_may_run();
  } else {
    check_not_captured("a command was to run at once on a captured stream");
  }
  if (activity::is_on()) [[unlikely]] {
    begin_record(entry, nested);
  }
  Lock lock(mutex_);
  std::optional<Error> before;
  if (!nested) {
    acquire_executor(lock, entry.epoch);
    if (has_failure_) {
      before = failure_;
    }
  }
  lock.unlock();
  // Who waits for the command that runs here waits for this stream too.
  std::optional<WaitEdge> edge;
  if (running_stream() != nullptr) {
    edge.emplace(*this);
  }
  std::optional<Error> error;
  std::optional<Error> of_cleanup;
  {
    const RunningScope scope(this, /*part=*/true);
    if (failure_injection::armed() && !(nested && is_message(entry.action)) &&
        state_.usable_since(entry.epoch)) {
      inject_failure(entry);
    }
    // The caller cannot leave what it waits for.
    const auto limit = lane_->exchange_limit(state_.wait_timeout());
    error = execute(entry, before);
    lane_->exchange_limit(limit);
    if (!error) {
      error = state_.failure_since(entry.epoch); // it may have been dropped
    }
    if (!error) {
      release(entry.action, of_cleanup); // within the turn
    }
  }
  if (!nested || of_cleanup) {
    lock.lock();
    if (before) {
      forget_failure_locked(); // the caller learns of it
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

/// Makes the calling thread the executor, after what is enqueued now.
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
  queue_.push_back({Turn{&granted}, epoch});
  ++enqueued_;
  state_.count_enqueued();
  try {
    wait_until(lock, [&granted] { return granted; }, before, deadline());
  } catch (...) {
    for (Entry& entry : queue_) {
      auto* turn = std::get_if<Turn>(&entry.action);
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
    push(lock, {Record{std::move(point)}, epoch});
    return;
  }
  check_accepts(epoch);
  if (failure_) {
    point->fail(*failure_);
  }
  lock.unlock();
  point->reach();
}

void Stream::forget_failure_in_order(Epoch epoch) {
  Lock lock(mutex_);
  if (idle_locked()) {
    check_accepts(epoch);
    forget_failure_locked();
  } else {
    push(lock, {Forget{}, epoch});
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
  push(lock, {Wait{std::move(point)}, epoch});
}

bool Stream::idle() const {
  const auto [enqueued, completed] = progress();
  return enqueued == completed;
}

/// Without the lock, for kernels ask on each allocation. What is completed is
/// read first, so that it is never more than there was.
std::pair<std::uint64_t, std::uint64_t> Stream::progress() const {
  const std::uint64_t completed = completed_;
  return {enqueued_, completed};
}

std::optional<Error> Stream::failure() const {
  if (!has_failure_) {
    return std::nullopt;
  }
  const std::lock_guard lock(mutex_);
  return failure_;
}

bool Stream::runs_here() const noexcept {
  for (const Running* entry = t_running; entry; entry = outer_of(*entry)) {
    if (entry->stream == this) {
      return true;
    }
  }
  return false;
}

void Stream::check_may_wait() const {
  if (runs_here()) {
    throw Failure(
        orErrorNotPermitted, "a kernel cannot wait for its own stream");
  }
}

void Stream::check_may_run() const {
  for (const Running* entry = t_running; entry; entry = outer_of(*entry)) {
    if (entry->stream == this && entry->enqueued) {
      throw Failure(
          orErrorNotPermitted,
          "the kernel that calls has enqueued work on the same stream, which "
          "comes first but runs after the kernel: expected a call that "
          "enqueues");
    }
    if (entry->stream == this && entry->pipelined) {
      throw Failure(
          orErrorNotPermitted,
          "what takes the reply to an enqueued message cannot run a command on "
          "its own stream, where later ones may have begun: expected a call "
          "that enqueues");
    }
  }
}

void Stream::drain(const Deadline& deadline) {
  check_may_wait();
  // For a reset, see check_accepts().
  if (idle() && !state_.failed() && !has_failure_) {
    return;
  }
  Lock lock(mutex_);
  std::uint64_t launches = 0;
  do { // again for what its own kernels enqueued meanwhile
    launches = launches_of_its_kernels_;
    const std::uint64_t target = enqueued_;
    wait_until(
        lock,
        [this, target] { return completed_ >= target; },
        target,
        deadline);
    drained_ = std::max(drained_, target);
  } while (launches != launches_of_its_kernels_);
}

void Stream::wait_for_place(std::uint64_t place, const Deadline& deadline) {
  check_may_wait();
  Lock lock(mutex_);
  wait_until(
      lock, [this, place] { return completed_ >= place; }, place, deadline);
}

std::optional<Error> Stream::take_failure() {
  if (!has_failure_) { // as nearly always, and each synchronization asks
    return std::nullopt;
  }
  const std::lock_guard lock(mutex_);
  std::optional<Error> failure = failure_;
  if (last_dropped_ <= drained_) {
    forget_failure_locked();
  }
  return failure;
}

void Stream::forget_failure(const Error& reported) {
  const std::lock_guard lock(mutex_);
  if (failure_ && failure_->number == reported.number &&
      last_dropped_ <= drained_) {
    forget_failure_locked();
  }
}

void Stream::forget_failure_locked() noexcept {
  failure_.reset();
  has_failure_ = false;
}

void Stream::settle(Point::Clock::time_point deadline) {
  for (const Running* entry = t_running; entry; entry = entry->outer) {
    if (entry->stream == this) {
      return; // it ends after this call at the earliest
    }
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
  forget_failure_locked();
}

void Stream::push(Lock& lock, Entry&& entry) {
  if (queue_.size() >= kMaxQueued) [[unlikely]] {
    wait_for_room(lock, entry);
  }
  check_accepts(entry.epoch);
  if (!has_worker_ && !process::exiting()) {
    start_worker(); // first: what is counted is not taken back
  }
  inject_failure(entry);
  if (activity::is_on()) [[unlikely]] {
    begin_record(entry, /*may_be_part=*/false);
  }
  const auto* record = std::get_if<Record>(&entry.action);
  if (record != nullptr) {
    record->point->place(completed_, enqueued_ + 1);
  }
  const bool is_work = record == nullptr;
  queue_.push_back(std::move(entry));
  ++enqueued_;
  state_.count_enqueued();
  worker_ends_ = false;
  const bool wakes = worker_sleeps_ && !busy_;
  if (t_running != nullptr) {
    note_launch_of_kernel(is_work);
  }
  if (process::exiting()) {
    drop_queue();
  } else if (wakes) {
    lock.unlock(); // or the worker would wake to wait for it
    work_.notify_one();
  }
}

/// Waits until the queue is no longer full. Not a kernel, which may hold what
/// has to end first, nor a record, a wait or a forget, which cost nothing and
/// which callers make with locks held. Throws orErrorTimeout.
void Stream::wait_for_room(Lock& lock, const Entry& entry) {
  const bool waits = !std::holds_alternative<Record>(entry.action) &&
      !std::holds_alternative<Wait>(entry.action) &&
      !std::holds_alternative<Forget>(entry.action);
  if (!waits || t_running != nullptr) {
    return;
  }
  const CancellationDeferred deferred;
  const Deadline limit = deadline();
  while (queue_.size() >= kMaxQueued && !process::exiting()) {
    wake_at_ = std::min(wake_at_, completed_ + 1);
    if (!limit.at) {
      done_.wait(lock);
    } else if (
        done_.wait_until(lock, *limit.at) == std::cv_status::timeout &&
        queue_.size() >= kMaxQueued) {
      throw Failure(
          orErrorTimeout,
          "a stream of device " + std::to_string(device_) + " still holds " +
              std::to_string(queue_.size()) +
              " commands, which is as many as it can, after " +
              std::to_string(limit.limit) + " ms");
    }
  }
}

/// The command that calls has enqueued more on the stream, which the device's
/// waits include. An event that is reached late holds nobody up for long, so
/// work that runs before its record is no harm.
void Stream::note_launch_of_kernel(bool is_work) {
  state_.count_launch_of_kernel();
  bool of_its_own = false;
  for (Running* running = t_running; running; running = outer_of(*running)) {
    if (running->stream == this) {
      running->enqueued = running->enqueued || is_work;
      of_its_own = true;
    }
  }
  launches_of_its_kernels_ += of_its_own ? 1 : 0;
}

void Stream::start_worker() {
  workers::add(*this);
  try {
    start_thread([this] { work(); });
    has_worker_ = true;
  } catch (const std::system_error& error) {
    workers::remove(*this);
    throw Failure(
        orErrorUnknown,
        std::string("no thread for the stream: ") + error.what());
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
      while (process::exiting()) {
        pause(); // its thread_local variables may use what is gone by now
      }
      return;
    }
    execute_next(lock, kMostInTurn);
  }
}

/// Returns when the worker has to do something, or to end.
void Stream::wait_for_work(Lock& lock) {
  const bool idle = queue_.empty() && !retired_;
  const auto start = std::chrono::steady_clock::now();
  if (idle) {
    spin_wait(lock, enqueued_, enqueued_ + 1);
  }
  worker_sleeps_ = true;
  work_.wait(lock, [this] {
    return !busy_ && (!queue_.empty() || retired_ || worker_ends_);
  });
  worker_sleeps_ = worker_ends_ = false;
  if (idle) {
    const bool is_short =
        std::chrono::steady_clock::now() - start < 2 * kLongSpin;
    short_gaps_ = std::clamp(short_gaps_ + (is_short ? 1 : -2), 0, kShortGaps);
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

/// Whether the next command may begin before those that began are finished.
bool Stream::queues_next() const noexcept {
  if (queue_.empty() || queue_.front().hit != nullptr || failure_) {
    return false;
  }
  const auto* command = std::get_if<Command>(&queue_.front().action);
  return command != nullptr && lane_->queues(*command);
}

/// Keeps the lane busy: commands begin while earlier ones run.
void Stream::execute_queued(Lock& lock, std::uint64_t most) {
  busy_ = true;
  struct Begun {
    Entry entry;
    std::optional<Error> error; // it failed at its beginning
  };
  std::deque<Begun> begun;    // the lane has pointers to what is in there
  std::optional<Error> first; // failure; the commands behind it are dropped
  std::uint64_t room = std::min(most, kMostInTurn);
  const auto may_begin = [&] { return room > 0 && !first && queues_next(); };
  const RunningScope scope(this, /*part=*/false, /*pipelined=*/true);
  do {
    for (; may_begin(); --room) {
      Begun& next = begun.emplace_back(std::move(queue_.front()), std::nullopt);
      queue_.pop_front();
      lock.unlock();
      next.error = state_.failure_since(next.entry.epoch);
      lane_->measure(next.entry.ticket != nullptr);
      if (!next.error) {
        next.error = attempt(
            [&] { lane_->begin(std::get<Command>(next.entry.action)); });
      }
      lock.lock();
    }
    lock.unlock();
    Begun& oldest = begun.front();
    if (!oldest.error) {
      oldest.error = attempt([&] { lane_->finish(); });
    }
    if (oldest.entry.ticket != nullptr) [[unlikely]] {
      end(*oldest.entry.ticket, *lane_, oldest.error);
    }
    release(oldest.entry.action, oldest.error);
    if (oldest.error && !state_.usable_since(oldest.entry.epoch)) {
      oldest.error.reset(); // the failure of the device says it all
    }
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
  const std::optional<Error> before = failure_;
  std::optional<Error> error;
  std::shared_ptr<Point> recorded;
  bool forgets = false;
  {
    // The argument block goes before the turn ends: whoever waited finds all
    // that it held released. What releases it may not wait either.
    const RunningScope scope(this, /*part=*/false);
    const Entry entry = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    if (const auto* record = std::get_if<Record>(&entry.action)) {
      recorded = record->point; // also behind a failure: each wait ends
      if (const auto failure = failure_before(entry.epoch, before)) {
        recorded->fail(*failure);
      }
      recorded->stamp();
    } else if (std::holds_alternative<Forget>(entry.action)) {
      forgets = true;
    } else {
      error = execute(entry, before);
    }
    release(entry.action, error);
    if (error && !state_.usable_since(entry.epoch)) {
      error.reset(); // the failure of the device says it all
    }
  }
  lock.lock();
  if (forgets) {
    forget_failure_locked();
  } else if (error) {
    keep_failure(std::move(*error), /*dropped=*/before.has_value());
  }
  finish_turn();
  if (recorded) {
    recorded->reach(); // wakes who waits for it
  }
}

/// Returns the failure of the entry, or why it was dropped: `before` is the
/// failure of the stream when its turn came.
std::optional<Error> Stream::execute(
    const Entry& entry,
    const std::optional<Error>& before) {
  return recorded(
      entry.ticket.get(), [&] { return execute_unrecorded(entry, before); });
}

/// Does what a ticket, which may be null, is for.
template <typename Work>
std::optional<Error> Stream::recorded(
    activity::Ticket* ticket,
    const Work& work) {
  if (ticket == nullptr) [[likely]] {
    return work();
  }
  t_running->ticket = ticket;
  ticket->record.started = activity::now();
  lane_->measure(true);
  auto error = work();
  lane_->measure(false);
  end(*ticket, *lane_, error);
  return error;
}

/// Why a command of that epoch cannot run now, if so.
std::optional<Error> Stream::failure_before(
    Epoch epoch,
    const std::optional<Error>& before) const {
  auto failure = state_.failure_since(epoch);
  return failure ? failure : before;
}

std::optional<Error> Stream::execute_unrecorded(
    const Entry& entry,
    const std::optional<Error>& before) {
  if (auto failure = failure_before(entry.epoch, before)) {
    return failure;
  }
  if (const auto* wait = std::get_if<Wait>(&entry.action)) {
    std::optional<Error> failure;
    auto error = attempt([&] { failure = wait_for(*wait->point); });
    return error ? error : failure;
  }
  if (const auto* run = std::get_if<GraphRun>(&entry.action)) {
    return execute_run(*run, entry.epoch);
  }
  return attempt([&] {
    if (entry.hit) {
      entry.hit->apply(&state_);
      if (auto failure = state_.failure_since(entry.epoch)) {
        throw Dropped(std::move(*failure)); // since the delay
      }
    }
    act(entry.action);
  });
}

/// Returns the failure of a node; those behind it are dropped.
std::optional<Error> Stream::execute_run(const GraphRun& run, Epoch epoch) {
  const auto& nodes = run.graph->branches()[run.branch].nodes;
  for (std::size_t i = run.nodes.begin; i < run.nodes.end; ++i) {
    const Graph::Node& node = nodes[i];
    const auto* command = std::get_if<Command>(&node);
    const auto work = [&] {
      if (command == nullptr) {
        const auto& host = std::get<HostCall>(node);
        host.function(host.data);
        return;
      }
      if (auto hit = failure_injection::next(site_of(*command), device_)) {
        hit->apply(&state_);
      }
      lane_->execute(*command);
    };
    auto* ticket =
        run.tickets.empty() ? nullptr : run.tickets[i - run.nodes.begin].get();
    auto error = recorded(ticket, [&] { return attempt(work); });
    if (!error) {
      error = state_.failure_since(epoch);
    }
    if (error) {
      return error;
    }
  }
  return std::nullopt;
}

/// Returns what `work` throws; a failure that sticks is one of the device.
template <typename Work>
std::optional<Error> Stream::attempt(const Work& work) {
  try {
    work();
    return std::nullopt;
  } catch (const Dropped& dropped) {
    return dropped.error();
  } catch (...) {
    Error error = error_of("a kernel");
    if (DeviceState::sticks(error.code)) {
      state_.fail(error);
    }
    return error;
  }
}

void Stream::act(const Action& action) {
  if (const auto* command = std::get_if<Command>(&action)) {
    lane_->execute(*command);
  } else {
    const auto& host = std::get<HostCall>(action);
    host.function(host.data);
  }
}

/// Returns the failure of the work before the point.
std::optional<Error> Stream::wait_for(Point& point) const {
  std::optional<WaitEdge> edge; // for kernels that wait for this stream
  if (!point.reached()) {
    edge.emplace(point);
  }
  // In slices: a device that is lost meanwhile waits for nobody, and neither
  // does a process that exits.
  constexpr std::chrono::milliseconds kSlice{20};
  while (!point.wait_until(Point::Clock::now() + kSlice)) {
    if (state_.failed() || process::exiting()) {
      return std::nullopt;
    }
  }
  const auto failure = point.failure();
  return failure ? std::optional(*failure) : std::nullopt;
}

/// The first failure counts; `dropped` if the command of this turn is behind
/// it.
void Stream::keep_failure(Error error, bool dropped) {
  number_error(error);
  if (!failure_) {
    failure_ = std::move(error);
    has_failure_ = true;
  }
  if (dropped) {
    last_dropped_ = completed_ + 1;
  }
}

void Stream::finish_turn() {
  busy_ = false;
  ++completed_;
  pass_turn();
  if (completed_ >= wake_at_) {
    wake_waiting();
  }
  if (worker_sleeps_ && !busy_ && (!queue_.empty() || retired_)) {
    work_.notify_one();
  }
}

/// Those who have to wait for more say so again.
void Stream::wake_waiting() {
  if (wake_at_ != kNobody) {
    wake_at_ = kNobody;
    done_.notify_all();
  }
}

/// Makes the thread that waits at the front, if one does, the executor.
void Stream::pass_turn() {
  while (!queue_.empty() && !busy_) {
    const auto* turn = std::get_if<Turn>(&queue_.front().action);
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

/// At exit the code of a kernel or of its cleanup may be gone already: neither
/// runs any more. Records are reached, so that nobody waits for ever.
void Stream::drop_queue() {
  for (Entry& entry : queue_) {
    if (std::holds_alternative<Turn>(entry.action)) {
      continue;
    }
    if (const auto* record = std::get_if<Record>(&entry.action)) {
      record->point->reach();
    }
    dropped_.push_back(std::exchange(entry, Entry{Turn{nullptr}, entry.epoch}));
  }
  pass_turn();
  wake_waiting();
}

/// Gives the lock away until the counter has reached `target`, but not for
/// long.
void Stream::spin_wait(
    Lock& lock,
    const std::atomic<std::uint64_t>& counter,
    std::uint64_t target) const {
  static const bool alone = std::thread::hardware_concurrency() == 1;
  if (alone) {
    return;
  }
  constexpr int kSpinsPerClock = 16;
  const auto limit = short_gaps_ > kShortGaps / 2 ? kLongSpin : kSpin;
  lock.unlock();
  const auto end = std::chrono::steady_clock::now() + limit;
  const auto reached = [&] {
    return counter.load(std::memory_order_relaxed) >= target;
  };
  do {
    for (int i = 0; i < kSpinsPerClock && !reached(); ++i) {
      relax_core();
    }
  } while (!reached() && std::chrono::steady_clock::now() < end);
  lock.lock();
}

/// Waits until `done`, at the latest once `completed` entries are.
template <typename Done>
void Stream::wait_until(
    Lock& lock,
    const Done& done,
    std::uint64_t completed,
    const Deadline& deadline) {
  if (done()) {
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
      spin_wait(lock, completed_, completed);
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
      const char* running = lane_->running();
      throw Failure(
          orErrorTimeout,
          "a stream of device " + std::to_string(device_) + " still has " +
              std::to_string(completed - completed_) +
              " commands to do after " + std::to_string(deadline.limit) +
              " ms" + (running ? std::string(" and runs ") + running : "") +
              "; they go on");
    }
  }
}

} // namespace openreg
