// SPDX-License-Identifier: BSD-3-Clause
// The waits between streams.
#include "wait_graph.h"

#include "error.h"
#include "stream.h"

#include <mutex>
#include <string>
#include <unordered_map>

namespace openreg {
namespace {

struct Graph {
  std::mutex mutex; // nothing else is locked in it
  std::unordered_map<const Stream*, const Stream*> waits;
};

Graph& graph() {
  static auto* value = new Graph;
  return *value;
}

} // namespace

WaitEdge::WaitEdge(const Stream* target) {
  const Stream* from = running_stream();
  if (from == nullptr || target == nullptr) {
    return;
  }
  const std::lock_guard lock(graph().mutex);
  const Stream*& wait = graph().waits[from];
  outer_ = wait;
  wait = target;
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
  if (outer_ != nullptr) {
    waits[from_] = outer_;
  } else {
    waits.erase(from_);
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
    if (next == waits.end()) {
      return;
    }
    stream = next->second;
    if (stream == from_) {
      const int device = from_->device();
      const int target = waits.at(from_)->device();
      end();
      throw Failure(
          orErrorNotPermitted,
          "a kernel of device " + std::to_string(device) +
              " waits for a stream of device " + std::to_string(target) +
              " that waits for the kernel: neither would ever go on");
    }
  }
}

} // namespace openreg
