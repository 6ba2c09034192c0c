// SPDX-License-Identifier: BSD-3-Clause
// Counts, on demand, the dispatch paths from operators to their CPU kernels,
// and the calls that are sent as messages.
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
  kCompiled, // a compiled kernel, not an operator
  kEnqueued,
  kPart,      // of another operator, which is counted
  kCorrected, // enqueued, with other strides than predicted
};

namespace detail {
extern std::atomic<int> path_counters;
} // namespace detail

/// Whether a counter is active. This check is the only cost if none is.
inline bool counts_paths() {
  return C10_UNLIKELY(
      detail::path_counters.load(std::memory_order_relaxed) > 0);
}

void count_path(const c10::OperatorName& name, DispatchPath path);

/// Adds a counter (1) or removes one (-1).
OPENREG_ATEN_API void count_paths(int change);

/// Returns operator, dispatch path and number of counted calls.
OPENREG_ATEN_API std::vector<std::tuple<std::string, std::string, uint64_t>>
path_counts();

/// Counts a call that was, or was not, sent as a message.
void count_message(const c10::OperatorName& name, bool sent);

/// Returns the operator, the number of calls sent as messages, and the number
/// of calls whose arguments or results cannot be encoded.
OPENREG_ATEN_API
std::vector<std::tuple<std::string, std::uint64_t, std::uint64_t>>
message_counts();

} // namespace openreg::aten
