// SPDX-License-Identifier: BSD-3-Clause
// Opens and closes the kernel mappings of blocks.
#include "memory/memory_check.h"

#include "base/error.h"
#include "base/system_thread.h"

#include <atomic>
#include <fstream>
#include <string>

namespace openreg::memory_check {
namespace {

std::atomic<std::size_t> g_blocks{0}; // of all devices

/// The most live blocks. Each takes two of the process's memory mappings; the
/// program needs the others, for example to start threads.
std::size_t max_blocks() {
  static const std::size_t result = [] {
    const CancellationDeferred deferred;
    std::size_t mappings = 65530; // the default of the system
    std::ifstream("/proc/sys/vm/max_map_count") >> mappings;
    return mappings / 4 * 3 / 2;
  }();
  return result;
}

} // namespace

void start(const AddressSpace& memory, int device) {
  memory.protect(
      memory.device_mapping(device) + memory.distance(),
      memory.own_span(),
      false);
}

void open(const AddressSpace& memory, std::byte* begin, std::size_t size) {
  if (++g_blocks > max_blocks()) {
    throw Failure(
        orErrorMemoryAllocation,
        "OPENREG_MEMORY_CHECK=1 allows " + std::to_string(max_blocks()) +
            " blocks at a time, because each takes two mappings: raise "
            "vm.max_map_count, or allocate fewer blocks");
  }
  memory.protect(begin + memory.distance(), size, true);
}

void hide(const AddressSpace& memory, std::byte* begin, std::size_t size) {
  memory.protect(begin + memory.distance(), size, false);
}

void close(const AddressSpace& memory, std::byte* begin, std::size_t size) {
  --g_blocks;
  hide(memory, begin, size);
}

} // namespace openreg::memory_check
