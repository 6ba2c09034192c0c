// SPDX-License-Identifier: BSD-3-Clause
// Faults: accesses to memory that the process must not access.
#pragma once

#include <cstddef>

namespace openreg::platform {

/// Calls `explain` on the faulting thread, with the address, before the fault
/// takes its course: it passes to the handler that was installed before, or
/// ends the process. Signals that were sent are not faults.
void install_fault_handler(void (*explain)(void* address));

/// Writes to standard error, also during a fault.
void write_error(const char* text, std::size_t size) noexcept;

} // namespace openreg::platform
