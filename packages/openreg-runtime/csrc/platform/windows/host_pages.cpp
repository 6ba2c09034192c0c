// SPDX-License-Identifier: BSD-3-Clause
// Lookups of host pages by VirtualQuery().
#include "platform/host_pages.h"

#include "platform/windows/system.h"

#include <malloc.h>

namespace openreg::platform {

bool is_mapped(std::uintptr_t begin, std::uintptr_t end) noexcept {
  for (std::uintptr_t at = begin; at < end;) {
    MEMORY_BASIC_INFORMATION region{};
    if (VirtualQuery(
            reinterpret_cast<const void*>(at), &region, sizeof(region)) == 0 ||
        region.State != MEM_COMMIT) {
      return false;
    }
    at = reinterpret_cast<std::uintptr_t>(region.BaseAddress) +
        region.RegionSize;
  }
  return true;
}

void* allocate_aligned(std::size_t alignment, std::size_t size) noexcept {
  return _aligned_malloc(size, alignment);
}

void free_aligned(void* pointer) noexcept {
  _aligned_free(pointer);
}

} // namespace openreg::platform
