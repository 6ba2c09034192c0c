// SPDX-License-Identifier: BSD-3-Clause
// Events and their part of the C API.
#include "stream/event.h"

#include "base/error.h"
#include "base/handle_table.h"
#include "base/system_thread.h"
#include "device/device.h"
#include "ipc/event.h"
#include "stream/stream.h"
#include "stream/wait_graph.h"

#include <algorithm>
#include <string>
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

void Point::wait(const Deadline& deadline) {
  // A far end instead of none; beyond it the clock would overflow.
  constexpr std::chrono::hours kFar{24 * 365};
  const auto end = deadline.at.value_or(Clock::now() + kFar);
  const CancellationDeferred deferred;
  WaitEdge edge(*this);
  for (;;) {
    edge.check();
    const auto next =
        edge ? std::min(end, Clock::now() + WaitEdge::kCheckEvery) : end;
    if (wait_until(next)) {
      return;
    }
    if (next == end) {
      throw Failure(
          orErrorTimeout,
          "the event was not reached in " + std::to_string(deadline.limit) +
              " ms; the work before it goes on");
    }
  }
}

std::shared_ptr<ipc::SharedEvent> Event::shared() const {
  const std::lock_guard lock(mutex_);
  if (!shared_) {
    throw Failure(orErrorInvalidHandle, "event was destroyed meanwhile");
  }
  return shared_;
}

std::shared_ptr<Point> Event::new_point(const Stream& stream) const {
  if (kind_ == Kind::kShared) {
    return std::make_shared<ipc::SharedPoint>(shared(), stream);
  }
  return std::make_shared<LocalPoint>(stream);
}

// A thread that races with orEventDestroy() may find a record of another kind.
void Event::record(std::shared_ptr<Point> point) {
  const std::lock_guard lock(mutex_);
  if (shared_) {
    if (const auto* shared = dynamic_cast<ipc::SharedPoint*>(point.get())) {
      shared_->publish(shared->ticket());
    }
  }
  last_ = std::move(point);
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
  const auto* ours = dynamic_cast<ipc::SharedPoint*>(last_.get());
  if (ours != nullptr && ours->ticket() == ticket) {
    return last_; // which knows its stream
  }
  return std::make_shared<ipc::SharedPoint>(shared_, ticket);
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
        shared_ ? "event is one of another process, which alone can share it"
                : "event was created without orEventInterprocess");
  }
  orIpcEventHandle_t handle{};
  ipc::write_handle(handle.reserved, ipc::Kind::kEvent, file_.get());
  return handle;
}

namespace {

/// All events of the process: the live ones and those to use again.
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

/// A handle of an event that `prepare` makes ready.
template <typename Prepare>
orEvent_t make_event(Prepare&& prepare) {
  Event* object = events().take();
  try {
    prepare(*object);
    return events().handles.insert(object);
  } catch (...) {
    events().give(object);
    throw;
  }
}

Event::Kind kind_of(unsigned int flags) {
  constexpr unsigned int kTiming = orEventDisableTiming | orEventEnableTiming;
  if ((flags & ~(kTiming | orEventInterprocess)) != 0 ||
      (flags & kTiming) == kTiming) {
    throw Failure(
        orErrorInvalidValue,
        "flags " + std::to_string(flags) +
            " are not orEventDefault, orEventDisableTiming, "
            "orEventEnableTiming "
            "or orEventInterprocess with orEventDisableTiming");
  }
  const bool timing = (flags & orEventDisableTiming) == 0;
  if ((flags & orEventInterprocess) == 0) {
    return timing ? Event::Kind::kTimed : Event::Kind::kUntimed;
  }
  if (timing) {
    throw Failure(
        orErrorInvalidValue,
        "flags " + std::to_string(flags) +
            ": orEventInterprocess needs orEventDisableTiming too");
  }
  return Event::Kind::kShared;
}

/// What the C function of that name does.
orError_t create_event(
    const char* function,
    orEvent_t* event,
    unsigned int flags) noexcept {
  return api_call(function, [&] {
    check_not_null(event, "event");
    const auto kind = kind_of(flags);
    runtime();
    *event = make_event([kind](Event& object) { object.start(kind); });
  });
}

} // namespace

orEvent_t open_event(const ipc::File& file) {
  return make_event([&file](Event& event) { event.start(file); });
}

std::size_t live_event_count() {
  return events().handles.live_count();
}

Event& event_of(orEvent_t event) {
  return events().handles.get(event, "event");
}

} // namespace openreg

using openreg::api_call;
using openreg::check_not_null;
using openreg::event_of;
using openreg::Failure;

extern "C" {

orError_t orEventCreate(orEvent_t* event) noexcept {
  return openreg::create_event("orEventCreate", event, orEventDefault);
}

orError_t orEventCreateWithFlags(
    orEvent_t* event,
    unsigned int flags) noexcept {
  return openreg::create_event("orEventCreateWithFlags", event, flags);
}

orError_t orEventRecord(orEvent_t event, orStream_t stream) noexcept {
  return api_call("orEventRecord", [&] {
    openreg::Event& object = event_of(event);
    openreg::Stream& where = openreg::stream_of(stream);
    const auto epoch = where.check_usable();
    auto point = object.new_point(where);
    // First the stream, which can fail: nobody may wait for a point that no
    // stream will reach.
    where.record(point, epoch);
    object.record(std::move(point));
  });
}

orError_t orEventQuery(orEvent_t event) noexcept {
  orError_t result = orSuccess;
  const orError_t error = api_call("orEventQuery", [&] {
    const auto point = event_of(event).last();
    if (!point) {
      return;
    }
    const openreg::Stream* stream = point->stream();
    const auto resets = stream != nullptr ? stream->check_usable() : 0;
    if (!point->reached()) {
      point->check();
      result = openreg::not_ready(
          "orEventQuery: the work before the event is still queued or running");
    } else if (stream != nullptr) {
      // A lost device drops the work before the event.
      stream->check_usable_since(resets);
    }
  });
  return error == orSuccess ? result : error;
}

orError_t orEventSynchronize(orEvent_t event) noexcept {
  return api_call("orEventSynchronize", [&] {
    const auto point = event_of(event).last();
    if (!point) {
      return;
    }
    const openreg::Stream* stream = point->stream();
    if (stream == nullptr) {
      auto& device = openreg::runtime().device(openreg::current_device());
      point->wait(device.state().deadline());
      return;
    }
    const auto resets = stream->check_usable();
    if (!point->reached()) {
      stream->check_may_wait();
      point->wait(stream->deadline());
    }
    stream->check_usable_since(resets); // as in orEventQuery
  });
}

orError_t
orEventElapsedTime(float* ms, orEvent_t start, orEvent_t end) noexcept {
  orError_t result = orSuccess;
  const orError_t error = api_call("orEventElapsedTime", [&] {
    check_not_null(ms, "ms");
    openreg::Event& first = event_of(start);
    openreg::Event& second = event_of(end);
    const auto from = first.last();
    const auto to = second.last();
    if (!first.timing() || !second.timing() || !from || !to) {
      throw Failure(
          orErrorInvalidHandle,
          "start and end must both be recorded, and created with timing");
    }
    if (!from->reached() || !to->reached()) {
      result = openreg::not_ready(
          "orEventElapsedTime: the work before an event is still queued or "
          "running");
      return;
    }
    *ms = std::chrono::duration<float, std::milli>(to->time() - from->time())
              .count();
  });
  return error == orSuccess ? result : error;
}

orError_t orEventDestroy(orEvent_t event) noexcept {
  return api_call("orEventDestroy", [&] {
    openreg::Event& object = openreg::events().handles.remove(event, "event");
    openreg::events().give(&object);
  });
}

} // extern "C"
