// SPDX-License-Identifier: BSD-3-Clause
// The counters of roads: a map behind a lock, for nobody times a counted run.
#include "kernel/roads.h"

#include <map>
#include <mutex>

namespace openreg::aten {
namespace {

struct Counts {
  std::mutex mutex;
  std::map<std::pair<std::string, Road>, uint64_t> calls;
};

Counts& counts() {
  static auto* value = new Counts;
  return *value;
}

std::string name_of(Road road) {
  switch (road) {
    case Road::kBoxed:
      return "boxed";
    case Road::kTyped:
      return "typed";
    case Road::kStructured:
      return "structured";
    case Road::kStub:
      return "stub";
    case Road::kEnqueued:
      return "enqueued";
    case Road::kCorrected:
      return "corrected";
  }
  return "";
}

} // namespace

std::atomic<int> detail::road_counters{0};

void count_road(const c10::OperatorName& name, Road road) {
  Counts& all = counts();
  const std::lock_guard lock(all.mutex);
  ++all.calls[{toString(name), road}];
}

void count_roads(int change) {
  detail::road_counters.fetch_add(change, std::memory_order_relaxed);
}

std::vector<std::tuple<std::string, std::string, uint64_t>> road_counts() {
  Counts& all = counts();
  const std::lock_guard lock(all.mutex);
  std::vector<std::tuple<std::string, std::string, uint64_t>> rows;
  for (const auto& [key, calls] : all.calls) {
    rows.emplace_back(key.first, name_of(key.second), calls);
  }
  return rows;
}

} // namespace openreg::aten
