// SPDX-License-Identifier: BSD-3-Clause
// A point in the work of a stream. Memory and random numbers wait until the
// work before it is complete.
#pragma once

#include <openreg/openreg.h>

#include <utility>

namespace openreg::aten {

/// The end of the current work of a stream. Never throws: a failed device and a
/// destroyed stream have no pending work. An error of the stream stays there
/// until a call waits for the stream, and moves on to streams that hold().
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
  /// Waits at most as long as the device's limit for waits. A kernel does not
  /// wait for its own stream.
  void wait() const noexcept;
  /// Makes later work of `stream` wait, and fail if the work before the event
  /// failed.
  void hold(orStream_t stream) const noexcept;

 private:
  orEvent_t event_ = nullptr; // null if there is nothing to wait for
};

} // namespace openreg::aten
