// SPDX-License-Identifier: BSD-3-Clause
// Counts how often the host has waited for a device.
#pragma once

#include <atomic>
#include <cstdint>

namespace openreg::aten {

/// Changes each time a thread waits for device work.
inline std::atomic<uint32_t> g_host_waits{0};

/// Call it before the host blocks.
inline void note_host_wait() {
  g_host_waits.fetch_add(1, std::memory_order_relaxed);
}

} // namespace openreg::aten
