// SPDX-License-Identifier: BSD-3-Clause
// Events and their part of the C API.
#include "event.h"

#include "error.h"
#include "handle_table.h"
#include "runtime.h"
#include "stream.h"

#include <vector>

namespace openreg {

void Point::reach() {
  {
    const std::lock_guard lock(mutex_);
    time_ = Clock::now();
    reached_.store(true, std::memory_order_release);
  }
  condition_.notify_all();
}

bool Point::wait_until(Clock::time_point time) {
  if (reached()) {
    return true;
  }
  std::unique_lock lock(mutex_);
  return condition_.wait_until(lock, time, [this] { return reached(); });
}

void Point::wait(const Deadline& deadline) {
  // A far end instead of none; beyond it the clock would overflow.
  constexpr std::chrono::hours kFar{24 * 365};
  if (!wait_until(deadline.at.value_or(Clock::now() + kFar))) {
    throw Failure(
        orErrorTimeout,
        "the event was not reached in " + std::to_string(deadline.limit) +
            " ms; the work before it goes on");
  }
}

std::shared_ptr<Point> Event::last() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

void Event::record(std::shared_ptr<Point> point) {
  const std::lock_guard lock(mutex_);
  last_ = std::move(point);
}

void Event::reset(bool timing) {
  const std::lock_guard lock(mutex_);
  last_.reset();
  timing_ = timing;
}

namespace {

/// All events of the process: the live ones and those to use again.
struct Events {
  HandleTable<Event, orEvent_t> handles;
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
    const std::lock_guard lock(mutex);
    recycled.push_back(event);
  }
};

Events& events() {
  static auto* value = new Events;
  return *value;
}

} // namespace

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
  return orEventCreateWithFlags(event, orEventDefault);
}

orError_t orEventCreateWithFlags(
    orEvent_t* event,
    unsigned int flags) noexcept {
  return api_call("orEventCreateWithFlags", [&] {
    check_not_null(event, "event");
    constexpr unsigned int kKnown = orEventDisableTiming | orEventEnableTiming;
    if ((flags & ~kKnown) != 0 || flags == kKnown) {
      throw Failure(
          orErrorInvalidValue,
          "flags " + std::to_string(flags) +
              " are not orEventDefault, orEventDisableTiming or "
              "orEventEnableTiming");
    }
    openreg::runtime();
    openreg::Event* object = openreg::events().take();
    object->reset((flags & orEventDisableTiming) == 0);
    *event = openreg::events().handles.insert(object);
  });
}

orError_t orEventRecord(orEvent_t event, orStream_t stream) noexcept {
  return api_call("orEventRecord", [&] {
    openreg::Event& object = event_of(event);
    openreg::Stream& where = openreg::stream_of(stream);
    where.check_usable();
    auto point = std::make_shared<openreg::Point>(where);
    // First the stream, which can fail: nobody may wait for a point that no
    // stream will reach.
    where.record(point);
    object.record(std::move(point));
  });
}

orError_t orEventQuery(orEvent_t event) noexcept {
  orError_t result = orSuccess;
  const orError_t error = api_call("orEventQuery", [&] {
    if (const auto point = event_of(event).last()) {
      point->stream().check_usable();
      result = point->reached() ? orSuccess : orErrorNotReady;
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
    const openreg::Stream& stream = point->stream();
    stream.check_usable();
    if (!point->reached()) {
      stream.check_may_wait();
      point->wait(stream.deadline());
      stream.check_usable(); // a lost device drops the work before the event
    }
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
      result = orErrorNotReady;
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
