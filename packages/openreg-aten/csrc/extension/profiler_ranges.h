// SPDX-License-Identifier: BSD-3-Clause
// Named ranges of host code, nested per thread as in NVTX. The profiler
// observer records them, and tests and tools read them.
#pragma once

#include "base/export.h"

#include <cstdint>
#include <string>
#include <vector>

namespace openreg::aten {

struct ProfilerRange {
  std::string name;
  int depth;       // number of enclosing ranges of its thread
  uint64_t thread; // PyTorch's thread ID
};

void push_range(const char* name);
/// Ends the innermost range of this thread. No effect if there is none.
void pop_range();
/// Records a range without a duration.
void mark_range(const char* name);

/// Returns the ranges since the last call, ordered by start. At most 1048576
/// are kept until then, and later ones are dropped.
OPENREG_ATEN_API std::vector<ProfilerRange> take_ranges();

} // namespace openreg::aten
