// SPDX-License-Identifier: BSD-3-Clause
// Lookups of host pages by mincore().
#include "platform/host_pages.h"

#include "platform/mapping.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <sys/mman.h>

namespace openreg::platform {
namespace {

/// The parameter of mincore(), whose type differs between systems.
struct Residency {
  std::array<unsigned char, 4096> pages; // one byte per page; not read

  operator unsigned char*() {
    return pages.data();
  }
  operator char*() {
    return reinterpret_cast<char*>(pages.data());
  }
};

} // namespace

bool is_mapped(std::uintptr_t begin, std::uintptr_t end) noexcept {
  const std::uintptr_t page = page_size();
  Residency resident;
  const std::uintptr_t step = resident.pages.size() * page;
  for (std::uintptr_t at = begin / page * page; at < end;) {
    const std::uintptr_t size = std::min(step, end - at);
    while (mincore(reinterpret_cast<void*>(at), size, resident) != 0) {
      if (errno != EAGAIN) {
        return false;
      }
    }
    at += size;
  }
  return true;
}

void* allocate_aligned(std::size_t alignment, std::size_t size) noexcept {
  void* pointer = nullptr;
  return posix_memalign(&pointer, alignment, size) == 0 ? pointer : nullptr;
}

void free_aligned(void* pointer) noexcept {
  std::free(pointer);
}

} // namespace openreg::platform
