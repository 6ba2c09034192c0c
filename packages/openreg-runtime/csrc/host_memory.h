// SPDX-License-Identifier: BSD-3-Clause
// Pinned host memory: ordinary memory that the runtime knows.
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
/// The pinned block around `pointer`.
std::optional<Block> find(const void* pointer);

struct Usage {
  std::size_t blocks;
  std::size_t bytes;
  std::size_t registrations;
};
Usage usage();

} // namespace openreg::host_memory
