// SPDX-License-Identifier: BSD-3-Clause
// Pinned host memory: ordinary memory that the runtime has allocated (a block)
// or that the program has registered (a registration).
#pragma once

#include <cstddef>
#include <optional>

namespace openreg::host_memory {

struct Block {
  void* begin;
  std::size_t size;
};

/// Throws orErrorMemoryAllocation.
void* allocate(std::size_t size);
/// Throws orErrorInvalidValue.
void free(void* pointer);

/// Registers mapped memory as pinned. Throws orErrorInvalidValue and
/// orErrorHostMemoryAlreadyRegistered.
void add(void* pointer, std::size_t size);
/// Ends a registration. Throws orErrorInvalidValue and
/// orErrorHostMemoryNotRegistered.
void remove(void* pointer);

/// The block or registration around `pointer`.
std::optional<Block> find(const void* pointer);

struct Usage {
  std::size_t blocks;
  std::size_t bytes; // of the blocks, as requested
  std::size_t registrations;
};
Usage usage();

} // namespace openreg::host_memory
