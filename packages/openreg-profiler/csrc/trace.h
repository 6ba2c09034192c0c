// SPDX-License-Identifier: BSD-3-Clause
// Records of the runtime as activities of Kineto.
#pragma once

#include "details.h"

#include <openreg/activity.h>

#include <IActivityProfiler.h>
#include <cstdint>
#include <libkineto.h>
#include <unordered_map>
#include <vector>

namespace openreg::profiler {

/// The range that a range lies in, by their ids.
using Ranges = std::unordered_map<std::uint64_t, std::uint64_t>;

struct Window { // nanoseconds of CLOCK_REALTIME
  std::int64_t begin;
  std::int64_t end;
};

/// Adds what was asked for in the window to the trace, also if it ran later.
/// Returns the details of work.
std::vector<Detail> add_activities(
    libkineto::CpuTraceBuffer& trace,
    const std::vector<orActivity>& records,
    std::int64_t to_realtime,
    const Window& window,
    const Ranges& outer_ranges,
    const libkineto::getLinkedActivityCallback& linked);

} // namespace openreg::profiler
