// SPDX-License-Identifier: BSD-3-Clause
// Details of device work that are in traces but not in PyTorch's events. A
// trace can be written only once, and that is left to the program.
#pragma once

#include <cstdint>
#include <vector>

namespace openreg::profiler {

struct Detail {
  std::int32_t id;       // of the activity
  std::int64_t started;  // nanoseconds of CLOCK_REALTIME
  std::int64_t enqueued; // nanoseconds of CLOCK_REALTIME
  std::uint64_t bytes;   // 0: unknown
};

/// Keeps the details of a trace and of a few earlier ones.
void keep_details(std::vector<Detail>&& details);
/// Returns all kept details.
std::vector<Detail> kept_details();

} // namespace openreg::profiler
