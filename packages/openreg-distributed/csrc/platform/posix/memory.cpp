// SPDX-License-Identifier: BSD-3-Clause
// Mappings of shared files.
#include "platform/posix/memory.h"

#include "platform/shared_file.h"

#include <sys/mman.h>
#include <sys/resource.h>

namespace openreg::distributed {

bool may_create_file(size_t size) noexcept {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur >= size;
}

std::byte* SharedFile::map(size_t size) const {
  void* begin = mmap(
      nullptr,
      size,
      PROT_READ | PROT_WRITE,
      MAP_SHARED,
      static_cast<int>(handle_),
      0);
  if (begin == MAP_FAILED) {
    return nullptr;
  }
  keep_from_children(static_cast<std::byte*>(begin), size);
  return static_cast<std::byte*>(begin);
}

void SharedFile::unmap(std::byte* begin, size_t size) noexcept {
  munmap(begin, size);
}

} // namespace openreg::distributed
