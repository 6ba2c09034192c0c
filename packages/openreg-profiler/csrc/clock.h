// SPDX-License-Identifier: BSD-3-Clause
// The runtime's clock and Kineto's.
#pragma once

#include <cstdint>

namespace openreg::profiler {

/// Returns the nanoseconds to add to CLOCK_MONOTONIC times, as in the runtime's
/// records, to get CLOCK_REALTIME times, as in traces.
std::int64_t monotonic_to_realtime();

} // namespace openreg::profiler
