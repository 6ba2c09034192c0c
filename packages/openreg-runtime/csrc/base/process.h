// SPDX-License-Identifier: BSD-3-Clause
// Events in the life of the process that end the use of devices: fork, exit.
#pragma once

#include <atomic>

namespace openreg::process {

/// Marks the devices as in use: from here on a forked child may not use them.
/// `on_exit` is called when the process exits, after exiting() turned true.
void mark_in_use(void (*on_exit)());
bool in_use() noexcept;

inline std::atomic<bool> g_bad_fork{false};
/// True in a child that was forked after mark_in_use().
inline bool in_bad_fork() noexcept {
  return g_bad_fork.load(std::memory_order_relaxed);
}

inline std::atomic<bool> g_exiting{false};
/// True once the process exits: queued commands are dropped from then on.
inline bool exiting() noexcept {
  return g_exiting.load(std::memory_order_relaxed);
}

} // namespace openreg::process
