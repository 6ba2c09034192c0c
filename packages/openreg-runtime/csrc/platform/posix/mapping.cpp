// SPDX-License-Identifier: BSD-3-Clause
// Mappings by mmap().
#include "platform/mapping.h"

#include "platform/posix/descriptor.h"
#include "platform/posix/inheritance.h"

#include <sys/mman.h>
#include <unistd.h>

namespace openreg::platform {
namespace {

constexpr int flags_of(Access access) {
  return access == Access::kNone ? PROT_NONE : PROT_READ | PROT_WRITE;
}

} // namespace

std::size_t page_size() noexcept {
  static const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

void end_reservation(std::byte* begin, std::size_t size) noexcept {
  munmap(begin, size);
  forget_mappings(begin, size);
}

Result map_reserved(
    std::byte* begin,
    std::size_t size,
    const File& file,
    std::uint64_t offset,
    Access access) {
  if (mmap(
          begin,
          size,
          flags_of(access),
          MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
          descriptor_of(file),
          static_cast<off_t>(offset)) == MAP_FAILED) {
    return Result::last();
  }
  if (access != Access::kNone) {
    keep_from_children(begin, size);
  }
  return {};
}

Result unmap_reserved(std::byte* begin, std::size_t size) {
  if (mmap(
          begin,
          size,
          PROT_NONE,
          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
          -1,
          0) == MAP_FAILED) {
    return Result::last();
  }
  forget_mappings(begin, size);
  return {};
}

Result protect(std::byte* begin, std::size_t size, Access access) {
  return mprotect(begin, size, flags_of(access)) == 0 ? Result()
                                                      : Result::last();
}

Result map(
    const File& file,
    std::uint64_t offset,
    std::size_t size,
    bool inherited,
    std::byte*& begin) {
  void* mapped = mmap(
      nullptr,
      size,
      PROT_READ | PROT_WRITE,
      MAP_SHARED | MAP_NORESERVE,
      descriptor_of(file),
      static_cast<off_t>(offset));
  if (mapped == MAP_FAILED) {
    return Result::last();
  }
  begin = static_cast<std::byte*>(mapped);
  if (!inherited) {
    keep_from_children(begin, size);
  }
  return {};
}

void unmap(std::byte* begin, std::size_t size) noexcept {
  munmap(begin, size);
  forget_mappings(begin, size);
}

} // namespace openreg::platform
