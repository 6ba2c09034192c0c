// SPDX-License-Identifier: BSD-3-Clause
// The event part of the C API.
#include "stream/event.h"

#include "base/device_number.h"
#include "base/error.h"
#include "device/runtime.h"
#include "device/stream_handles.h"
#include "stream/capture.h"
#include "stream/stream.h"

#include <chrono>
#include <string>
#include <utility>

using namespace openreg;

namespace {

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

/// Throws if the events were recorded on different devices, whose clocks are
/// unrelated.
void check_same_device(const Point& start, const Point& end) {
  if (start.stream() == nullptr || end.stream() == nullptr) {
    return;
  }
  const int first = start.stream()->device();
  const int second = end.stream()->device();
  if (first != second) {
    throw Failure(
        orErrorInvalidHandle,
        "start was recorded on device " + std::to_string(first) +
            ", and end on device " + std::to_string(second) +
            ": expected two events of one device");
  }
}

/// The body of the C functions that create events.
orError_t create_event(
    const char* function,
    orEvent_t* event,
    unsigned int flags) noexcept {
  return api_call(function, [&] {
    check_not_null(event, "event");
    const auto kind = kind_of(flags);
    runtime();
    *event = make_event(kind);
  });
}

} // namespace

extern "C" {

orError_t orEventCreate(orEvent_t* event) noexcept {
  return create_event("orEventCreate", event, orEventDefault);
}

orError_t orEventCreateWithFlags(
    orEvent_t* event,
    unsigned int flags) noexcept {
  return create_event("orEventCreateWithFlags", event, flags);
}

orError_t orEventRecord(orEvent_t event, orStream_t stream) noexcept {
  return api_call("orEventRecord", [&] {
    Event& object = event_of(event);
    Stream& where = stream_of(stream);
    const auto epoch = where.check_usable();
    if (object.is_shared()) {
      where.check_not_captured(
          "an interprocess event was recorded on a captured stream");
    }
    if (auto captured = where.record_in_capture(epoch)) {
      object.record(std::move(captured), event);
      return;
    }
    auto point = object.new_point(where);
    // The stream comes first because it can fail: no caller may wait for a
    // point that no stream will reach.
    where.record(point, epoch);
    object.record(std::move(point), event);
  });
}

orError_t orEventQuery(orEvent_t event) noexcept {
  orError_t result = orSuccess;
  const orError_t error = api_call("orEventQuery", [&] {
    const auto point = event_of(event).last();
    if (!point) {
      return;
    }
    check_not_captured(*point);
    const Stream* stream = point->stream();
    const auto epoch = stream != nullptr ? stream->check_usable() : 0;
    if (!point->reached()) {
      if (schedule::is_on() && stream != nullptr) [[unlikely]] {
        schedule::note_query(*stream);
      }
      point->check();
      result = not_ready(
          "orEventQuery: the work before the event is still queued or running");
      return;
    }
    if (stream != nullptr) {
      // A lost device drops the work before the event.
      stream->check_usable_since(epoch);
    }
    point->check_work();
  });
  return error == orSuccess ? result : error;
}

orError_t orEventSynchronize(orEvent_t event) noexcept {
  return api_call("orEventSynchronize", [&] {
    const auto point = event_of(event).last();
    if (!point) {
      return;
    }
    check_not_captured(*point);
    const Stream* stream = point->stream();
    if (stream == nullptr) {
      auto& device = runtime().device(current_device());
      point->wait(device.state().deadline());
      point->check_work();
      return;
    }
    const auto epoch = stream->check_usable();
    if (!point->reached()) {
      stream->check_may_wait();
      point->wait(stream->deadline());
    }
    stream->check_usable_since(epoch); // as in orEventQuery
    point->check_work();
  });
}

orError_t
orEventElapsedTime(float* ms, orEvent_t start, orEvent_t end) noexcept {
  orError_t result = orSuccess;
  const orError_t error = api_call("orEventElapsedTime", [&] {
    check_not_null(ms, "ms");
    Event& first = event_of(start);
    Event& second = event_of(end);
    const auto from = first.last();
    const auto to = second.last();
    if (!first.timing() || !second.timing() || !from || !to) {
      throw Failure(
          orErrorInvalidHandle,
          "start and end must both be recorded, and created with timing");
    }
    for (const auto& point : {from, to}) {
      check_not_captured(*point);
      if (point->stream() != nullptr) {
        point->stream()->check_usable();
      }
    }
    check_same_device(*from, *to);
    if (!from->reached() || !to->reached()) {
      result = not_ready(
          "orEventElapsedTime: the work before an event is still queued or "
          "running");
      return;
    }
    from->check_work();
    to->check_work();
    *ms = std::chrono::duration<float, std::milli>(to->time() - from->time())
              .count();
  });
  return error == orSuccess ? result : error;
}

orError_t orEventDestroy(orEvent_t event) noexcept {
  return api_call("orEventDestroy", [&] { destroy_event(event); });
}

} // extern "C"
