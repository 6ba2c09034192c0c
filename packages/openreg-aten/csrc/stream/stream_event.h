// SPDX-License-Identifier: BSD-3-Clause
// A point in the work of a stream, for what waits until work is completed:
// memory, and random numbers.
#pragma once

#include <openreg/openreg.h>

#include <utility>

namespace openreg::aten {

/// The end of the work that a stream has now. Never throws: a device that
/// failed, and a stream that is gone, do no more work. The failure of a stream
/// stays there, for the call that waits for the stream, and flows to the
/// streams that hold().
class StreamEvent {
 public:
  explicit StreamEvent(orStream_t stream) noexcept;
  StreamEvent(StreamEvent&& other) noexcept
      : event_(std::exchange(other.event_, nullptr)) {}
  StreamEvent& operator=(StreamEvent&& other) noexcept {
    std::swap(event_, other.event_);
    return *this;
  }
  StreamEvent(const StreamEvent&) = delete;
  StreamEvent& operator=(const StreamEvent&) = delete;
  ~StreamEvent();

  bool reached() const noexcept;
  /// Waits, as long as the device's limit of waits allows. A kernel that would
  /// wait for its own stream does not.
  void wait() const noexcept;
  /// Makes later work of `stream` wait, and fail if the work before the event
  /// failed.
  void hold(orStream_t stream) const noexcept;

 private:
  orEvent_t event_ = nullptr; // null if there is nothing to wait for
};

} // namespace openreg::aten
