// SPDX-License-Identifier: BSD-3-Clause
// Processes of this machine: this one, others, and forked ones.
#pragma once

#include "platform/result.h"

#include <cstdint>

namespace openreg::platform {

/// The system's number of this process.
int process_number() noexcept;

/// Identifies a process by its number, in the lower half, and by a value that
/// differs for later processes with the same number. Fits into one atomic word;
/// 0 is none.
using ProcessId = std::uint64_t;

constexpr std::uint32_t number_of(ProcessId process) noexcept {
  return static_cast<std::uint32_t>(process);
}

/// The identity of this process.
Result this_process(ProcessId& process);
/// False once the process has ended, even as a zombie. True if that cannot be
/// determined.
bool alive(ProcessId process) noexcept;

/// Calls `callback` in each child that is forked later. Fails if memory is
/// exhausted.
Result call_in_children(void (*callback)());

/// Calls `callback` when the program exits, while its other threads still run.
void call_at_exit(void (*callback)());

} // namespace openreg::platform
