// SPDX-License-Identifier: BSD-3-Clause
// The stream part of the C API.
#include "base/device_number.h"
#include "base/error.h"
#include "device/runtime.h"
#include "device/stream_handles.h"
#include "stream/capture.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

using namespace openreg;

namespace {

/// The body of the C functions that create streams.
orError_t create_stream(
    const char* function,
    orStream_t* stream,
    unsigned int flags,
    int priority) noexcept {
  return api_call(function, [&] {
    check_not_null(stream, "stream");
    if (flags != orStreamDefault && flags != orStreamNonBlocking) {
      throw Failure(
          orErrorInvalidValue,
          "flags " + std::to_string(flags) +
              " are not orStreamDefault or orStreamNonBlocking");
    }
    Device& device = runtime().device(current_device());
    device.state().check();
    *stream = make_stream(
        device, std::clamp(priority, kGreatestPriority, kLeastPriority));
  });
}

/// The default stream cannot join a capture, not even through an event.
void refuse_default_stream_in_capture(
    const Stream& stream,
    const Point* point) {
  Capture* capture = point != nullptr ? point->capture() : nullptr;
  if (capture != nullptr && !capture->ended() && !stream.runs_here() &&
      is_default(stream)) {
    capture->refuse(
        orErrorStreamCaptureUnsupported,
        "the default stream of device " + std::to_string(stream.device()) +
            " cannot wait for a captured event");
  }
}

} // namespace

extern "C" {

orError_t orStreamCreate(orStream_t* stream) noexcept {
  return create_stream(
      "orStreamCreate", stream, orStreamDefault, kLeastPriority);
}

orError_t orStreamCreateWithPriority(
    orStream_t* stream,
    unsigned int flags,
    int priority) noexcept {
  return create_stream("orStreamCreateWithPriority", stream, flags, priority);
}

orError_t orStreamDestroy(orStream_t stream) noexcept {
  return api_call("orStreamDestroy", [&] { destroy_stream(stream); });
}

orError_t orStreamGetDefault(orStream_t* stream, int device) noexcept {
  return api_call("orStreamGetDefault", [&] {
    check_not_null(stream, "stream");
    *stream = default_handle(device);
  });
}

orError_t orStreamQuery(orStream_t stream) noexcept {
  orError_t result = orSuccess;
  const orError_t error = api_call("orStreamQuery", [&] {
    Stream& object = stream_of(stream);
    const auto epoch = object.check_usable();
    object.check_not_captured("a captured stream was queried");
    if (!object.idle()) {
      if (schedule::is_on()) [[unlikely]] {
        schedule::note_query(object);
      }
      result = not_ready(
          "orStreamQuery: work of the stream is still queued or running");
      return;
    }
    object.check_usable_since(epoch); // a lost device drops the work
    if (auto failure = object.failure()) {
      throw Failure(std::move(*failure));
    }
  });
  return error == orSuccess ? result : error;
}

orError_t orStreamGetProgress(
    orStream_t stream,
    uint64_t* enqueued,
    uint64_t* completed) noexcept {
  return api_call("orStreamGetProgress", [&] {
    check_not_null(enqueued, "enqueued");
    check_not_null(completed, "completed");
    std::tie(*enqueued, *completed) = stream_of(stream).progress();
  });
}

orError_t orDeviceGetEnqueueCounter(
    const uint64_t** counter,
    int device) noexcept {
  return api_call("orDeviceGetEnqueueCounter", [&] {
    check_not_null(counter, "counter");
    *counter = runtime().device(device).state().enqueue_counter();
  });
}

orError_t orStreamRunsHere(orStream_t stream, int* here) noexcept {
  return api_call("orStreamRunsHere", [&] {
    check_not_null(here, "here");
    *here = stream_of(stream).runs_here() ? 1 : 0;
  });
}

orError_t orStreamSynchronize(orStream_t stream) noexcept {
  return api_call("orStreamSynchronize", [&] {
    Stream& object = stream_of(stream);
    const auto epoch = object.check_usable();
    object.check_not_captured("a captured stream was synchronized");
    object.drain(object.deadline());
    if (MemoryPools::any_spares()) {
      runtime().device(object.device()).memory().trim_pools();
    }
    object.check_usable_since(epoch);
    if (auto failure = object.take_failure()) {
      throw Failure(std::move(*failure));
    }
  });
}

orError_t orStreamWaitEvent(
    orStream_t stream,
    orEvent_t event,
    unsigned int flags) noexcept {
  return api_call("orStreamWaitEvent", [&] {
    check_no_flags(flags);
    Stream& object = stream_of(stream);
    const auto point = event_of(event).last();
    refuse_default_stream_in_capture(object, point.get());
    object.wait(point, object.check_usable());
  });
}

orError_t orStreamGetPriority(orStream_t stream, int* priority) noexcept {
  return api_call("orStreamGetPriority", [&] {
    check_not_null(priority, "priority");
    *priority = stream_of(stream).priority();
  });
}

orError_t orStreamGetDevice(orStream_t stream, int* device) noexcept {
  return api_call("orStreamGetDevice", [&] {
    check_not_null(device, "device");
    *device = stream_of(stream).device();
  });
}

orError_t orDeviceGetStreamPriorityRange(
    int* leastPriority,
    int* greatestPriority) noexcept {
  return api_call("orDeviceGetStreamPriorityRange", [&] {
    check_not_null(leastPriority, "leastPriority");
    check_not_null(greatestPriority, "greatestPriority");
    *leastPriority = kLeastPriority;
    *greatestPriority = kGreatestPriority;
  });
}

} // extern "C"
