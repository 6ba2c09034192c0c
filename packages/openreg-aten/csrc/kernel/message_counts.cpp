// SPDX-License-Identifier: BSD-3-Clause
// The counters of messages, by operator.
#include "kernel/message_counts.h"

#include <map>
#include <mutex>
#include <utility>

namespace openreg::aten {
namespace {

struct Counts {
  std::mutex mutex;
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> by_name;
};

Counts& counts() {
  static auto* value = new Counts; // for threads that outlive main()
  return *value;
}

} // namespace

void count_message(const c10::OperatorName& name, bool sent) {
  Counts& all = counts();
  const std::lock_guard lock(all.mutex);
  auto& entry = all.by_name[toString(name)];
  ++(sent ? entry.first : entry.second);
}

std::vector<std::tuple<std::string, std::uint64_t, std::uint64_t>>
message_counts() {
  Counts& all = counts();
  const std::lock_guard lock(all.mutex);
  std::vector<std::tuple<std::string, std::uint64_t, std::uint64_t>> result;
  result.reserve(all.by_name.size());
  for (const auto& [name, numbers] : all.by_name) {
    result.emplace_back(name, numbers.first, numbers.second);
  }
  return result;
}

} // namespace openreg::aten
