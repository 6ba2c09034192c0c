// SPDX-License-Identifier: BSD-3-Clause
// The mechanism gpu_trace, and the graph listener.
#include "device/trace.h"

#include "base/mechanism.h"

#include <atomic>

namespace openreg::aten {
namespace {

std::atomic<GraphListener> graph_listener{nullptr};

} // namespace

bool trace_enabled = false;

void set_graph_listener(GraphListener listener) {
  graph_listener = listener;
}

void trace_graph(GraphEvent event, uint64_t capture, orStream_t stream) {
  if (const GraphListener listener = graph_listener) {
    listener(event, capture, stream);
  }
}

OPENREG_MECHANISM(
    gpu_trace,
    "c10::impl::GPUTrace",
    "sanitizers and assert_no_host_sync receive no events") {
  trace_enabled = true;
}

} // namespace openreg::aten
