// SPDX-License-Identifier: BSD-3-Clause
// Streams of the backend.
//
// Streams of PyTorch's pool are shared: a collective could wait for user work
// that waits for the collective.
#pragma once

#include <openreg/activity.h>
#include <openreg/openreg.h>

#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace openreg::distributed {

/// Throws the runtime's last error of this thread.
void check(orError_t error);

c10::Stream current_stream(c10::DeviceIndex device);
/// Whether the stream is being captured into a graph.
bool is_captured(const c10::Stream& stream);
c10::DeviceIndex current_device();

/// A private stream, which ends with the object; its work continues.
class OwnStream {
 public:
  explicit OwnStream(c10::DeviceIndex device);
  ~OwnStream();
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;

  c10::Stream get() const {
    return stream_;
  }

 private:
  orStream_t handle_ = nullptr;
  c10::Stream stream_;
};

/// Makes a stream current in this thread during the scope.
class StreamScope {
 public:
  explicit StreamScope(c10::Stream stream);
  ~StreamScope();
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

 private:
  c10::Stream previous_;
};

std::shared_ptr<c10::Event> record_event(
    const c10::Stream& stream,
    bool has_time = false);

/// Whether the work before an event has ended, successfully or not.
bool is_reached(const c10::Event& event);

/// The description of a call for profilers: a kernel with this name that reads
/// and writes `bytes` bytes.
orLaunchInfo describe_call(const std::string& name, uint64_t bytes);

/// Runs `run` on this thread as work of an idle stream.
void run_now(
    const c10::Stream& stream,
    const std::function<void()>& run,
    const orLaunchInfo& info);

/// Called by the running kernel: discards its record, because the call itself
/// is recorded later.
void forget_launch();

struct Progress {
  uint64_t enqueued; // commands so far
  uint64_t completed;

  bool is_idle() const {
    return enqueued == completed;
  }
};
Progress progress_of(const c10::Stream& stream);

/// Whether an idle stream has an unreported failure.
bool has_failed(const c10::Stream& stream);

/// Enqueues `run`. `end` is called after it, also if the device or the stream
/// has failed and drops it: why_dropped() then returns the reason. Only `run`
/// may throw, which fails the stream.
void launch(
    const c10::Stream& stream,
    std::function<void()> run,
    std::function<void()> end,
    const orLaunchInfo& info);

/// Called in `end`: the failure for which `run` was dropped.
std::string why_dropped();

} // namespace openreg::distributed
