// SPDX-License-Identifier: BSD-3-Clause
// The waits between streams.
#include "stream/wait_graph.h"

#include "base/error.h"
#include "stream/event.h"
#include "stream/stream.h"

#include <limits>
#include <mutex>
#include <string>
#include <unordered_map>

namespace openreg {
namespace {

struct Graph {
  std::mutex mutex; // innermost lock
  std::unordered_map<const Stream*, AwaitedWork> waits;
};

Graph& graph() {
  static auto* value = new Graph;
  return *value;
}

/// False for a wait that has ended, even if its thread has not woken up yet.
bool is_pending(const AwaitedWork& work) {
  return work.point != nullptr ? !work.point->reached()
                               : work.stream->progress().second < work.position;
}

} // namespace

WaitEdge::WaitEdge(const Stream& stream, std::uint64_t position) {
  begin({&stream, position});
}

WaitEdge::WaitEdge(const Point& point) {
  begin({point.stream(), 0, &point});
}

WaitEdge::WaitEdge(const Stream& stream) {
  begin({&stream, std::numeric_limits<std::uint64_t>::max()});
}

void WaitEdge::begin(const AwaitedWork& work) {
  const Stream* from = running_stream();
  if (from == nullptr || work.stream == nullptr || work.stream == from) {
    return;
  }
  const std::lock_guard lock(graph().mutex);
  AwaitedWork& wait = graph().waits[from];
  outer_ = wait;
  wait = work;
  from_ = from;
}

WaitEdge::~WaitEdge() {
  if (from_ != nullptr) {
    const std::lock_guard lock(graph().mutex);
    end();
  }
}

void WaitEdge::end() noexcept {
  auto& waits = graph().waits;
  const auto wait = waits.find(from_);
  if (outer_.stream != nullptr) {
    wait->second = outer_;
  } else {
    waits.erase(wait);
  }
  from_ = nullptr;
}

void WaitEdge::check() {
  if (from_ == nullptr) {
    return;
  }
  const std::lock_guard lock(graph().mutex);
  const auto& waits = graph().waits;
  const Stream* stream = from_;
  for (std::size_t steps = 0; steps <= waits.size(); ++steps) {
    const auto next = waits.find(stream);
    if (next == waits.end() || !is_pending(next->second)) {
      return;
    }
    stream = next->second.stream;
    if (stream == from_) {
      const int device = from_->device();
      const int target = waits.at(from_).stream->device();
      end();
      throw Failure(
          orErrorNotPermitted,
          "a kernel of device " + std::to_string(device) +
              " waits for a stream of device " + std::to_string(target) +
              " that waits for the kernel: a deadlock");
    }
  }
}

} // namespace openreg
