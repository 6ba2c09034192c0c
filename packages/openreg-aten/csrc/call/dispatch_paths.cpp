// SPDX-License-Identifier: BSD-3-Clause
// The counters: a map with a lock, because counted runs are not timed.
#include "call/dispatch_paths.h"

#include <map>
#include <mutex>

namespace openreg::aten {
namespace {

struct Counts {
  std::mutex mutex;
  std::map<std::pair<std::string, DispatchPath>, uint64_t> calls;
  std::map<std::string, std::pair<uint64_t, uint64_t>> messages;
};

Counts& counts() {
  static auto* value = new Counts; // threads may outlive main()
  return *value;
}

std::string name_of(DispatchPath path) {
  switch (path) {
    case DispatchPath::kBoxed:
      return "boxed";
    case DispatchPath::kTyped:
      return "typed";
    case DispatchPath::kStructured:
      return "structured";
    case DispatchPath::kStub:
      return "stub";
    case DispatchPath::kCompiled:
      return "compiled";
    case DispatchPath::kEnqueued:
      return "enqueued";
    case DispatchPath::kPart:
      break;
    case DispatchPath::kCorrected:
      return "corrected";
  }
  return "";
}

} // namespace

std::atomic<int> detail::path_counters{0};

void count_path(const c10::OperatorName& name, DispatchPath path) {
  Counts& all = counts();
  const std::lock_guard lock(all.mutex);
  ++all.calls[{toString(name), path}];
}

void count_paths(int change) {
  detail::path_counters.fetch_add(change, std::memory_order_relaxed);
}

std::vector<std::tuple<std::string, std::string, uint64_t>> path_counts() {
  Counts& all = counts();
  const std::lock_guard lock(all.mutex);
  std::vector<std::tuple<std::string, std::string, uint64_t>> rows;
  for (const auto& [key, calls] : all.calls) {
    rows.emplace_back(key.first, name_of(key.second), calls);
  }
  return rows;
}

void count_message(const c10::OperatorName& name, bool sent) {
  Counts& all = counts();
  const std::lock_guard lock(all.mutex);
  auto& entry = all.messages[toString(name)];
  ++(sent ? entry.first : entry.second);
}

std::vector<std::tuple<std::string, std::uint64_t, std::uint64_t>>
message_counts() {
  Counts& all = counts();
  const std::lock_guard lock(all.mutex);
  std::vector<std::tuple<std::string, std::uint64_t, std::uint64_t>> rows;
  for (const auto& [name, numbers] : all.messages) {
    rows.emplace_back(name, numbers.first, numbers.second);
  }
  return rows;
}

} // namespace openreg::aten
