// SPDX-License-Identifier: BSD-3-Clause
// Whether graphs are being captured, for callers that need nothing else of it.
#pragma once

#include <c10/macros/Macros.h>

#include <atomic>

namespace openreg::aten {

inline std::atomic<int> g_captures{0};

/// Whether begin_capture() of this library is capturing a stream.
inline bool captures_underway() {
  return C10_UNLIKELY(g_captures.load(std::memory_order_acquire) > 0);
}

} // namespace openreg::aten
