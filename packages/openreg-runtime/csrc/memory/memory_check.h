// SPDX-License-Identifier: BSD-3-Clause
// OPENREG_MEMORY_CHECK=1: kernels find the pages of live blocks only.
//
// The heap is guarded then, and the kernel mapping of a device is closed but
// where a block lives. A kernel that touches anything else faults, and the
// handler of SIGSEGV says what it touched. What pages cannot tell goes
// unnoticed: bytes between the end of a block and the end of its last page.
#pragma once

#include "memory/address_space.h"

#include <cstddef>

namespace openreg::memory_check {

/// Closes all of a device's own memory, before its first block.
void start(const AddressSpace& memory, int device);
/// Opens the pages of a new block, which lie at `begin`. Throws
/// orErrorMemoryAllocation; then too the block must be closed.
void open(const AddressSpace& memory, std::byte* begin, std::size_t size);
/// Closes those of a block that is freed, but whose bytes stay for other
/// processes: close() follows.
void hide(const AddressSpace& memory, std::byte* begin, std::size_t size);
/// Closes those of a block that is freed.
void close(const AddressSpace& memory, std::byte* begin, std::size_t size);

} // namespace openreg::memory_check
