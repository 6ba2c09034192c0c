// SPDX-License-Identifier: BSD-3-Clause
// Events and their handles.
#include "stream/event.h"

#include "base/handle_table.h"
#include "base/system_thread.h"
#include "schedule/scheduler.h"
#include "stream/stream.h"
#include "stream/wait_graph.h"

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

namespace openreg {

void LocalPoint::reach() {
  {
    const std::lock_guard lock(mutex_);
    if (!reached()) {
      stamp();
    }
    reached_.store(true, std::memory_order_release);
  }
  condition_.notify_all();
}

bool LocalPoint::wait_until(Clock::time_point time) {
  if (reached()) {
    return true;
  }
  std::unique_lock lock(mutex_);
  return condition_.wait_until(lock, time, [this] { return reached(); });
}

void Point::check_work() const {
  if (const auto error = failure()) {
    throw Failure(*error);
  }
}

SharedPoint::~SharedPoint() {
  // The stream did not accept it, so no executor reaches it.
  if (stream() != nullptr) {
    stamp();
  }
}

void SharedPoint::fail(const Error& error) {
  Point::fail(error);
  event_->set_failure(ticket_, error);
}

std::shared_ptr<const Error> SharedPoint::failure() const {
  return stream() != nullptr ? Point::failure() : event_->failure(ticket_);
}

void SharedPoint::stamp() {
  if (!stamped_.exchange(true)) {
    event_->reach(ticket_);
  }
}

void SharedPoint::reach() {
  stamp();
  reached_ = true;
}

bool SharedPoint::wait_until(Clock::time_point time) {
  if (!event_->wait_until(ticket_, time)) {
    return false;
  }
  while (stream() != nullptr && !reached()) {
    std::this_thread::yield(); // the record is about to be completed
  }
  return true;
}

void Point::wait(const Deadline& deadline) {
  // A distant end instead of none, because the clock would overflow.
  constexpr std::chrono::hours kFar{24 * 365};
  const auto end = deadline.at.value_or(Clock::now() + kFar);
  const CancellationDeferred deferred;
  WaitEdge edge(*this);
  const bool scheduled = schedule::is_on() && stream() != nullptr;
  if (scheduled) [[unlikely]] {
    schedule::note_wait();
  }
  for (;;) {
    edge.check();
    auto next =
        edge ? std::min(end, Clock::now() + WaitEdge::kCheckEvery) : end;
    if (scheduled) [[unlikely]] {
      const bool ran = !reached() && schedule::run_next(*stream());
      const auto look = ran ? Clock::duration(0) : StallCheck::kLook;
      next = std::min(next, Clock::now() + look);
    }
    if (wait_until(next)) {
      return;
    }
    if (next == end) {
      throw Failure(
          orErrorTimeout,
          "the event was not reached within " + std::to_string(deadline.limit) +
              " ms; the work before it is still running");
    }
  }
}

namespace {

[[noreturn]] void throw_destroyed() {
  throw Failure(orErrorInvalidHandle, "event was destroyed during the call");
}

} // namespace

std::shared_ptr<ipc::SharedEvent> Event::shared() const {
  const std::lock_guard lock(mutex_);
  if (!shared_) {
    throw_destroyed();
  }
  return shared_;
}

std::shared_ptr<Point> Event::new_point(const Stream& stream) const {
  if (kind_ == Kind::kShared) {
    return std::make_shared<SharedPoint>(shared(), stream);
  }
  return std::make_shared<LocalPoint>(stream);
}

std::shared_ptr<Point> Event::last() const {
  const std::lock_guard lock(mutex_);
  if (!shared_) {
    return last_;
  }
  const auto ticket = shared_->last();
  if (ticket == 0) {
    return nullptr;
  }
  const auto* ours = dynamic_cast<SharedPoint*>(last_.get());
  if (ours != nullptr && ours->ticket() == ticket) {
    return last_; // which knows its stream
  }
  return std::make_shared<SharedPoint>(shared_, ticket);
}

void Event::start(Kind kind) {
  if (kind == Kind::kShared) {
    const std::lock_guard lock(mutex_);
    shared_ = ipc::SharedEvent::create(file_);
  }
  kind_ = kind;
}

void Event::start(const ipc::File& file) {
  const std::lock_guard lock(mutex_);
  shared_ = ipc::SharedEvent::open(file);
  kind_ = Kind::kShared;
}

void Event::end() {
  const std::lock_guard lock(mutex_);
  last_.reset();
  shared_.reset();
  file_ = ipc::File();
}

orIpcEventHandle_t Event::handle() const {
  const std::lock_guard lock(mutex_);
  if (!file_) {
    throw Failure(
        orErrorInvalidHandle,
        shared_ ? "event belongs to another process, and only that process can "
                  "share it"
                : "event was created without orEventInterprocess");
  }
  orIpcEventHandle_t handle{};
  ipc::write_handle(handle.reserved, ipc::Kind::kEvent, file_);
  return handle;
}

namespace {

/// All events of the process, live and reusable.
struct Events {
  HandleTable<Event, orEvent_t, HandleKind::kEvent> handles;
  std::mutex mutex;
  std::vector<Event*> recycled;

  Event* take() {
    const std::lock_guard lock(mutex);
    if (recycled.empty()) {
      return new Event;
    }
    Event* event = recycled.back();
    recycled.pop_back();
    return event;
  }
  void give(Event* event) {
    event->end();
    const std::lock_guard lock(mutex);
    recycled.push_back(event);
  }
};

Events& events() {
  static auto* value = new Events;
  return *value;
}

/// Returns a handle of an event that `prepare` initializes.
template <typename Prepare>
orEvent_t start_event(Prepare&& prepare) {
  Event* object = events().take();
  try {
    prepare(*object);
    return events().handles.insert(object);
  } catch (...) {
    events().give(object);
    throw;
  }
}

} // namespace

// A thread that races with orEventDestroy() may find another kind of record.
void Event::record(std::shared_ptr<Point> point, orEvent_t handle) {
  const std::lock_guard lock(mutex_);
  // destroy_event() ends the handle before it waits for the lock in end().
  if (events().handles.find_object(handle) != this) {
    throw_destroyed();
  }
  if (shared_) {
    if (const auto* shared = dynamic_cast<SharedPoint*>(point.get())) {
      shared_->publish(shared->ticket());
    }
  }
  last_ = std::move(point);
}

orEvent_t make_event(Event::Kind kind) {
  return start_event([kind](Event& event) { event.start(kind); });
}

orEvent_t open_event(const ipc::File& file) {
  return start_event([&file](Event& event) { event.start(file); });
}

std::size_t live_event_count() {
  return events().handles.live_count();
}

Event& event_of(orEvent_t event) {
  return events().handles.get(event, "event");
}

void destroy_event(orEvent_t event) {
  events().give(&events().handles.remove(event, "event"));
}

} // namespace openreg
