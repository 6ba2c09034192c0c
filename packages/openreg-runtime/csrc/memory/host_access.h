// SPDX-License-Identifier: BSD-3-Clause
// Device memory blocks that the host can access, for debugging.
#pragma once

#include "memory/address_space.h"
#include "memory/block.h"

#include <cstddef>

namespace openreg::host_access {

/// Opens the pages of a block, including neighbours on the same pages.
void open(const AddressSpace& memory, const Block& block);
/// Closes the block that starts at `begin`, if it is open; pages that it shares
/// with another open block stay open.
void close(const AddressSpace& memory, const void* begin);
/// Closes all blocks in a range of addresses.
void close_all(
    const AddressSpace& memory,
    const std::byte* begin,
    std::size_t size);
std::size_t open_count();

} // namespace openreg::host_access
