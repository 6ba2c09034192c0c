// SPDX-License-Identifier: BSD-3-Clause
// OPENREG_MEMORY_CHECK=1: kernels can access only the pages of live blocks.
//
// The heap is guarded, and the kernel mapping of a device is closed except for
// live blocks. A kernel that accesses other memory faults, and the SIGSEGV
// handler describes the address. Accesses between the end of a block and the
// end of its last page go unnoticed.
#pragma once

#include "memory/address_space.h"

#include <cstddef>

namespace openreg::memory_check {

/// Closes all of a device's own memory, before its first block.
void start(const AddressSpace& memory, int device);
/// Opens the pages of a new block, which begin at `begin`. May throw
/// orErrorMemoryAllocation; the block must be closed even then.
void open(const AddressSpace& memory, std::byte* begin, std::size_t size);
/// Closes the pages of a freed block whose bytes stay for other processes.
/// close() follows.
void hide(const AddressSpace& memory, std::byte* begin, std::size_t size);
/// Closes the pages of a freed block.
void close(const AddressSpace& memory, std::byte* begin, std::size_t size);

} // namespace openreg::memory_check
