// SPDX-License-Identifier: BSD-3-Clause
// Process events that end the use of devices: fork and exit.
#pragma once

#include "platform/result.h"

#include <atomic>

namespace openreg::process {

/// Marks the devices as in use: a child forked afterwards may not use them.
/// `on_exit` is called when the process exits, after exiting() turned true.
/// Fails, in every call, if memory for the fork handler is exhausted.
platform::Result mark_in_use(void (*on_exit)());
bool in_use() noexcept;

inline std::atomic<bool> g_bad_fork{false};
/// True in a child that was forked after mark_in_use().
inline bool in_bad_fork() noexcept {
  return g_bad_fork.load(std::memory_order_relaxed);
}

inline std::atomic<bool> g_exiting{false};
/// True once the process exits. Queued commands are then dropped.
inline bool exiting() noexcept {
  return g_exiting.load(std::memory_order_relaxed);
}

} // namespace openreg::process
