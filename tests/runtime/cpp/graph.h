// SPDX-License-Identifier: BSD-3-Clause
// Helpers for tests of captures and graphs.
#pragma once

#include "support.h"

/// A capture of a stream, which owns the graph.
class Captured {
 public:
  explicit Captured(
      orStream_t stream,
      orStreamCaptureMode mode = orStreamCaptureModeGlobal)
      : stream_(stream) {
    EXPECT_OK(orStreamBeginCapture(stream, mode));
  }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;
  ~Captured() {
    if (!ended_) {
      EXPECT_NE(end(), orErrorInvalidValue);
    }
    if (graph_ != nullptr) {
      EXPECT_OK(orGraphDestroy(graph_));
    }
  }

  orError_t end() {
    ended_ = true;
    return orStreamEndCapture(stream_, &graph_);
  }
  orGraph_t graph() const {
    return graph_;
  }

 private:
  orStream_t stream_;
  bool ended_ = false;
  orGraph_t graph_ = nullptr;
};

inline orStreamCaptureStatus status_of(orStream_t stream) {
  orStreamCaptureStatus status = orStreamCaptureStatusNone;
  std::uint64_t id = 0;
  EXPECT_OK(orStreamGetCaptureInfo(stream, &status, &id));
  EXPECT_EQ(id != 0, status != orStreamCaptureStatusNone);
  return status;
}

/// Enqueues `work`, which a graph runs at each launch.
inline void enqueue(orStream_t stream, std::function<void()> work) {
  auto* kept = new std::function<void()>(std::move(work));
  const orError_t error = orLaunchKernel(
      stream,
      [](void* args) { (*static_cast<std::function<void()>*>(args))(); },
      kept,
      [](void* args) { delete static_cast<std::function<void()>*>(args); });
  if (error != orSuccess) {
    delete kept;
  }
  EXPECT_OK(error);
}
