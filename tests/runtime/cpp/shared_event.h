// SPDX-License-Identifier: BSD-3-Clause
// Helpers for tests of shared events.
#pragma once

#include "two_processes.h"

inline constexpr unsigned int kShared =
    orEventInterprocess | orEventDisableTiming;

inline orIpcEventHandle_t handle_of(orEvent_t event) {
  orIpcEventHandle_t handle{};
  EXPECT_OK(orIpcGetEventHandle(&handle, event));
  return handle;
}

/// An event that the other process created.
class OpenedEvent {
 public:
  explicit OpenedEvent(OtherProcess& other) {
    EXPECT_OK(
        orIpcOpenEventHandle(&handle_, other.receive<orIpcEventHandle_t>()));
  }
  OpenedEvent(const OpenedEvent&) = delete;
  OpenedEvent& operator=(const OpenedEvent&) = delete;
  ~OpenedEvent() {
    EXPECT_OK(orEventDestroy(handle_));
  }
  operator orEvent_t() const {
    return handle_;
  }

 private:
  orEvent_t handle_ = nullptr;
};

/// Offers an event that is recorded behind a latch until released.
inline void offer_a_held_event(OtherProcess other) {
  const Stream stream;
  const Event event(kShared);
  Latch latch(stream);
  ASSERT_OK(orEventRecord(event, stream));
  other.send(handle_of(event));
  other.wait();
  latch.release();
  other.wait();
}
