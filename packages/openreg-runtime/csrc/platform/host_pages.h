// SPDX-License-Identifier: BSD-3-Clause
// Ordinary host memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace openreg::platform {

/// Whether the process has all pages of [begin, end) mapped.
bool is_mapped(std::uintptr_t begin, std::uintptr_t end) noexcept;

/// Returns null if memory is exhausted. The alignment is a power of two, at
/// least that of a pointer.
void* allocate_aligned(std::size_t alignment, std::size_t size) noexcept;
void free_aligned(void* pointer) noexcept;

} // namespace openreg::platform
