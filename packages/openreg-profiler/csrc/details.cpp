// SPDX-License-Identifier: BSD-3-Clause
// The details of the last traces.
#include "details.h"

#include <deque>
#include <mutex>
#include <utility>

namespace openreg::profiler {
namespace {

constexpr std::size_t kTraces = 8;

std::mutex g_mutex;

std::deque<std::vector<Detail>>& traces() {
  static std::deque<std::vector<Detail>> value;
  return value;
}

} // namespace

void keep_details(std::vector<Detail>&& details) {
  const std::lock_guard lock(g_mutex);
  traces().push_back(std::move(details));
  if (traces().size() > kTraces) {
    traces().pop_front();
  }
}

std::vector<Detail> kept_details() {
  const std::lock_guard lock(g_mutex);
  std::vector<Detail> all;
  for (const auto& each : traces()) {
    all.insert(all.end(), each.begin(), each.end());
  }
  return all;
}

} // namespace openreg::profiler
