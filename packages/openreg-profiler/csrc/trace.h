// SPDX-License-Identifier: BSD-3-Clause
// Converts the runtime's records to Kineto activities.
#pragma once

#include "details.h"

#include <openreg/activity.h>

#include <IActivityProfiler.h>
#include <cstdint>
#include <libkineto.h>
#include <unordered_map>
#include <vector>

namespace openreg::profiler {

/// The id of each range's enclosing range.
using Ranges = std::unordered_map<std::uint64_t, std::uint64_t>;

struct Window { // nanoseconds of CLOCK_REALTIME
  std::int64_t begin;
  std::int64_t end;
};

/// Returns the type of the C API's calls.
libkineto::ActivityType call_type();

/// Adds the activities enqueued in the window to the trace, even if they ran
/// later. Returns the details of the work.
std::vector<Detail> add_activities(
    libkineto::CpuTraceBuffer& trace,
    const std::vector<orActivity>& records,
    std::int64_t to_realtime,
    const Window& window,
    const Ranges& outer_ranges,
    const libkineto::getLinkedActivityCallback& linked);

} // namespace openreg::profiler
