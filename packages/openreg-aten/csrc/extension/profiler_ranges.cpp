// SPDX-License-Identifier: BSD-3-Clause
// Keeps the ranges of all threads in one list.
#include "extension/profiler_ranges.h"

#include <ATen/record_function.h>

#include <mutex>
#include <utility>

namespace openreg::aten {
namespace {

constexpr std::size_t kMaxRanges = 1 << 20;

struct Ranges {
  std::mutex mutex;
  std::vector<ProfilerRange> kept;
};

Ranges& ranges() {
  static auto* value = new Ranges; // threads may outlive static objects
  return *value;
}

thread_local int t_depth = 0;

} // namespace

void push_range(const char* name) {
  mark_range(name);
  ++t_depth;
}

void pop_range() {
  if (t_depth > 0) {
    --t_depth;
  }
}

void mark_range(const char* name) {
  ProfilerRange range{name, t_depth, at::RecordFunction::currentThreadId()};
  const std::lock_guard lock(ranges().mutex);
  if (ranges().kept.size() < kMaxRanges) {
    ranges().kept.push_back(std::move(range));
  }
}

std::vector<ProfilerRange> take_ranges() {
  const std::lock_guard lock(ranges().mutex);
  return std::exchange(ranges().kept, {});
}

} // namespace openreg::aten
