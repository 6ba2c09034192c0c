// SPDX-License-Identifier: BSD-3-Clause
// Named ranges of host code, nested in each thread, as NVTX has them: what the
// profiler observer marks, and tests and tools read.
#pragma once

#include "base/export.h"

#include <cstdint>
#include <string>
#include <vector>

namespace openreg::aten {

struct ProfilerRange {
  std::string name;
  int depth;       // how many ranges of its thread it lies in
  uint64_t thread; // PyTorch's number of the thread
};

void push_range(const char* name);
/// Ends the range of this thread that began last; none is not an error.
void pop_range();
/// A range without an extent.
void mark_range(const char* name);

/// The ranges since the last call, in the order of their beginnings. At most
/// 1048576 are kept until then: the later ones are dropped.
OPENREG_ATEN_API std::vector<ProfilerRange> take_ranges();

} // namespace openreg::aten
