// SPDX-License-Identifier: BSD-3-Clause
// What traces say of the work of devices, and PyTorch's events do not. A trace
// can be written once, and that is for the program to do.
#pragma once

#include <cstdint>
#include <vector>

namespace openreg::profiler {

struct Detail {
  std::int32_t id;       // of the activity
  std::int64_t started;  // nanoseconds of CLOCK_REALTIME
  std::int64_t enqueued; // the same
  std::uint64_t bytes;   // 0: unknown
};

/// Keeps those of a trace, and of a few that came before it.
void keep_details(std::vector<Detail>&& details);
/// All that are kept.
std::vector<Detail> kept_details();

} // namespace openreg::profiler
