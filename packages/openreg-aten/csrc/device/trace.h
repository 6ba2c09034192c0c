// SPDX-License-Identifier: BSD-3-Clause
// PyTorch's GPU trace: notifies Python about streams, events, host waits, and
// memory that is allocated or freed.
#pragma once

#include "base/export.h"
#include "base/keys.h"
#include "device/gil.h"

#include <openreg/openreg.h>

#include <c10/core/Device.h>
#include <c10/core/impl/GPUTrace.h>

#include <cstdint>

namespace openreg::aten {

/// Whether the mechanism gpu_trace is on. Set before the first use of a device.
extern bool trace_enabled;

/// Calls `event` of the interpreter if torch._C._activate_gpu_trace() was
/// called. It takes the GIL, so the caller must not hold a lock that a thread
/// with the GIL waits for.
template <typename... Parameters, typename... Arguments>
void trace(
    void (
        c10::impl::PyInterpreterVTable::*event)(c10::DeviceType, Parameters...)
        const,
    Arguments... arguments) {
  if (!trace_enabled) {
    return;
  }
  if (const auto* python = c10::impl::GPUTrace::get_trace()) [[unlikely]] {
    auto call = [&] {
      (python->operator->()->*event)(kDeviceType, arguments...);
    };
    call_with_python(
        [](void* call_) { (*static_cast<decltype(call)*>(call_))(); }, &call);
  }
}

/// The identifier of a stream, an event or memory in the trace.
inline uintptr_t trace_id(const void* handle) {
  return reinterpret_cast<uintptr_t>(handle);
}

/// The stream that represents the host when it finds an event complete.
constexpr uintptr_t kTracedHost = 0;

/// An event in the life of a graph. PyTorch's trace has no callbacks for
/// graphs.
enum class GraphEvent : std::uint8_t {
  kCaptureBegun,
  kCaptureEnded,
  kCaptureFailed, // at its end
  kReplay,        // about to be enqueued
  kReset,
};

/// Receives the events of graphs. `capture` is the runtime's number of the
/// capture that recorded the graph, `stream` the stream of the capture or of
/// the replay. It may throw, except for kReset.
using GraphListener =
    void (*)(GraphEvent event, uint64_t capture, orStream_t stream);
/// Sets the listener, or removes it (null).
OPENREG_ATEN_API void set_graph_listener(GraphListener listener);
/// Calls the listener, if there is one. As for trace(), the caller must not
/// hold a lock that a thread with the GIL waits for.
void trace_graph(GraphEvent event, uint64_t capture, orStream_t stream);

} // namespace openreg::aten
