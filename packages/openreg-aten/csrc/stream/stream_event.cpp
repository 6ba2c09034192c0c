// SPDX-License-Identifier: BSD-3-Clause
// Events for use inside this library. An error of the work before an event is
// reported when the program waits for the stream.
#include "stream/stream_event.h"

namespace openreg::aten {
namespace {

/// Clears the error that a call left on this thread.
orError_t forget(orError_t error) noexcept {
  if (error != orSuccess) {
    static_cast<void>(orGetLastError());
  }
  return error;
}

} // namespace

StreamEvent::StreamEvent(orStream_t stream) noexcept {
  if (forget(orEventCreateWithFlags(&event_, orEventDisableTiming)) !=
      orSuccess) {
    event_ = nullptr;
  } else if (forget(orEventRecord(event_, stream)) != orSuccess) {
    static_cast<void>(forget(orEventDestroy(event_)));
    event_ = nullptr;
  }
}

StreamEvent::~StreamEvent() {
  if (event_ != nullptr) {
    static_cast<void>(forget(orEventDestroy(event_)));
  }
}

bool StreamEvent::reached() const noexcept {
  return event_ == nullptr || forget(orEventQuery(event_)) != orErrorNotReady;
}

void StreamEvent::wait() const noexcept {
  if (event_ != nullptr) {
    static_cast<void>(forget(orEventSynchronize(event_)));
  }
}

void StreamEvent::hold(orStream_t stream) const noexcept {
  if (event_ != nullptr) {
    static_cast<void>(forget(orStreamWaitEvent(stream, event_, 0)));
  }
}

} // namespace openreg::aten
