// SPDX-License-Identifier: BSD-3-Clause
// The dispatch path of each operator to the CPU's kernel, counted on demand,
// and the calls that went through messages.
#pragma once

#include "base/export.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

namespace openreg::aten {

enum class DispatchPath : uint8_t {
  kBoxed,
  kTyped,
  kStructured,
  kStub,
  kCompiled, // a kernel of a compiler, and no operator
  kEnqueued,
  kPart,      // of another operator, which counts
  kCorrected, // enqueued, with other strides than were predicted
};

namespace detail {
extern std::atomic<int> path_counters;
} // namespace detail

/// Whether somebody counts; the one thing that costs when nobody does.
inline bool counts_paths() {
  return C10_UNLIKELY(
      detail::path_counters.load(std::memory_order_relaxed) > 0);
}

void count_path(const c10::OperatorName& name, DispatchPath path);

/// Adds one who counts (1), or takes one away (-1).
OPENREG_ATEN_API void count_paths(int change);

/// Operator, dispatch path and number of calls that were counted so far.
OPENREG_ATEN_API std::vector<std::tuple<std::string, std::string, uint64_t>>
path_counts();

/// Counts a call that has, or has not, gone through a message.
void count_message(const c10::OperatorName& name, bool sent);

/// Operator, calls by messages, and calls without, whose arguments or results
/// have no encoding.
OPENREG_ATEN_API
std::vector<std::tuple<std::string, std::uint64_t, std::uint64_t>>
message_counts();

} // namespace openreg::aten
