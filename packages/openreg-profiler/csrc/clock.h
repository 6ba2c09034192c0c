// SPDX-License-Identifier: BSD-3-Clause
// The runtime's clock and Kineto's.
#pragma once

#include <cstdint>

namespace openreg::profiler {

/// What is to be added to nanoseconds of CLOCK_MONOTONIC, which the runtime's
/// records have, for CLOCK_REALTIME, which traces have.
std::int64_t monotonic_to_realtime();

} // namespace openreg::profiler
