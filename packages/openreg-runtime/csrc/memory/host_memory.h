// SPDX-License-Identifier: BSD-3-Clause
// Pinned host memory: ordinary memory that the runtime knows, because it
// allocated it (a block) or was told of it (a registration).
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

/// Makes mapped memory pinned. Throws orErrorInvalidValue and
/// orErrorHostMemoryAlreadyRegistered.
void add(void* pointer, std::size_t size);
/// Ends that. Throws orErrorInvalidValue and orErrorHostMemoryNotRegistered.
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
