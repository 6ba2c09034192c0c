// SPDX-License-Identifier: BSD-3-Clause
// How often the host has waited for a device.
#pragma once

#include <atomic>
#include <cstdint>

namespace openreg::aten {

/// Changes whenever a thread waits for work of a device.
inline std::atomic<uint32_t> g_host_waits{0};

/// To be called by whoever lets the host wait.
inline void note_host_wait() {
  g_host_waits.fetch_add(1, std::memory_order_relaxed);
}

} // namespace openreg::aten
