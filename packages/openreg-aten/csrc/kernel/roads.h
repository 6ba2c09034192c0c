// SPDX-License-Identifier: BSD-3-Clause
// Which way each operator took to the CPU's kernel, counted on demand.
#pragma once

#include "export.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

namespace openreg::aten {

enum class Road : uint8_t {
  kBoxed,
  kTyped,
  kStructured,
  kStub,
  kEnqueued,
  kCorrected, // enqueued, with strides that its meta kernel did not know
};

namespace detail {
extern std::atomic<int> road_counters;
} // namespace detail

/// Whether somebody counts; the one thing that costs when nobody does.
inline bool counts_roads() {
  return C10_UNLIKELY(
      detail::road_counters.load(std::memory_order_relaxed) > 0);
}

void count_road(const c10::OperatorName& name, Road road);

/// Adds one who counts (1), or takes one away (-1).
OPENREG_ATEN_API void count_roads(int change);

/// Operator, road and number of calls that were counted so far.
OPENREG_ATEN_API std::vector<std::tuple<std::string, std::string, uint64_t>>
road_counts();

} // namespace openreg::aten
