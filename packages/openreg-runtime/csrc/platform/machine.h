// SPDX-License-Identifier: BSD-3-Clause
// The machine, and the processor time that this process has used.
#pragma once

#include <chrono>
#include <cstdint>

namespace openreg::platform {

/// The physical memory in bytes, or UINT64_MAX if it is not known.
std::uint64_t physical_memory() noexcept;
/// The processor time of all threads of this process.
std::chrono::nanoseconds processor_time() noexcept;

} // namespace openreg::platform
