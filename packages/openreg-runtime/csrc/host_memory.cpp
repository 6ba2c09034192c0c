// SPDX-License-Identifier: BSD-3-Clause
// The registry of pinned blocks.
#include "host_memory.h"

#include "error.h"

#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <shared_mutex>

namespace openreg::host_memory {
namespace {

constexpr std::size_t kAlignment = 64;

struct Registry {
  std::shared_mutex mutex;
  std::map<std::uintptr_t, std::size_t> blocks; // start, size in bytes
};

Registry& registry() {
  static auto* value = new Registry;
  return *value;
}

} // namespace

void* allocate(std::size_t size) {
  void* pointer = nullptr;
  if (posix_memalign(&pointer, kAlignment, size) != 0) {
    throw Failure(
        orErrorMemoryAllocation,
        "the host can not allocate " + std::to_string(size) +
            " bytes of pinned memory");
  }
  const std::unique_lock lock(registry().mutex);
  registry().blocks.emplace(reinterpret_cast<std::uintptr_t>(pointer), size);
  return pointer;
}

void free(void* pointer) {
  {
    const std::unique_lock lock(registry().mutex);
    if (registry().blocks.erase(reinterpret_cast<std::uintptr_t>(pointer)) ==
        0) {
      throw Failure(
          orErrorInvalidValue,
          "hostPtr " + hex(pointer) +
              " is not the start of a live pinned block: it was freed already, "
              "or not allocated by orMallocHost");
    }
  }
  std::free(pointer);
}

std::optional<Block> find(const void* pointer) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  const std::shared_lock lock(registry().mutex);
  const auto& blocks = registry().blocks;
  auto block = blocks.upper_bound(address);
  if (block == blocks.begin()) {
    return std::nullopt;
  }
  --block;
  if (address - block->first >= block->second) {
    return std::nullopt;
  }
  return Block{reinterpret_cast<void*>(block->first), block->second};
}

Usage usage() {
  Usage result{};
  const std::shared_lock lock(registry().mutex);
  for (const auto& [begin, size] : registry().blocks) {
    ++result.blocks;
    result.bytes += size;
  }
  return result;
}

} // namespace openreg::host_memory
