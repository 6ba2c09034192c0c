// SPDX-License-Identifier: BSD-3-Clause
// Reservations with a name in /proc/self/maps, and mappings that the system
// keeps from children.
#include "platform/file.h"
#include "platform/mapping.h"
#include "platform/posix/descriptor.h"
#include "platform/posix/inheritance.h"

#include <cerrno>
#include <sys/mman.h>

namespace openreg::platform {

Result reserve(std::size_t size, const char* name, std::byte*& begin) {
  File file;
  if (name != nullptr) {
    if (Result made = create_memory_file(name, 0, 0, file); !made) {
      return made;
    }
  }
  constexpr int kFlags = MAP_PRIVATE | MAP_NORESERVE;
  void* reserved = mmap(
      nullptr,
      size,
      PROT_NONE,
      name != nullptr ? kFlags : kFlags | MAP_ANONYMOUS,
      name != nullptr ? descriptor_of(file) : -1,
      0);
  if (reserved == MAP_FAILED) {
    return Result::last();
  }
  begin = static_cast<std::byte*>(reserved);
  return {};
}

void keep_from_children(std::byte* begin, std::size_t size) {
  madvise(begin, size, MADV_DONTFORK);
}

void forget_mappings(std::byte*, std::size_t) noexcept {}

} // namespace openreg::platform
