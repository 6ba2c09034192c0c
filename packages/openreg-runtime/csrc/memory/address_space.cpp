// SPDX-License-Identifier: BSD-3-Clause
// The double mapping of device memory, on Linux.
#include "memory/address_space.h"

#include "base/error.h"
#include "base/file_limit.h"
#include "base/system_thread.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace openreg {
namespace {

[[noreturn]] void fail(const char* what, std::size_t bytes) {
  const int reason = errno;
  const bool files = reason == EMFILE || reason == ENFILE;
  throw Failure(
      orErrorMemoryAllocation,
      std::string(what) + " of " + std::to_string(bytes) +
          " bytes of device address space failed: " + std::strerror(reason) +
          (files ? "; each device needs a file: raise the open file limit "
                   "(ulimit -n), or lower OPENREG_DEVICE_COUNT"
                 : "; lower OPENREG_DEVICE_MEMORY or OPENREG_DEVICE_COUNT"));
}

/// Reserves addresses without memory, with a name in /proc/self/maps.
void* reserve(std::size_t bytes) {
  const int file = memfd_create(AddressSpace::kReservedName, MFD_CLOEXEC);
  if (file < 0) {
    return MAP_FAILED;
  }
  void* reserved =
      mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_NORESERVE, file, 0);
  const int reason = errno;
  close(file);
  errno = reason;
  return reserved;
}

} // namespace

// Delegates, so that the destructor runs when the body throws.
AddressSpace::AddressSpace(
    int device_count,
    std::size_t own,
    std::size_t foreign,
    bool in_process)
    : AddressSpace(own, foreign) {
  const std::size_t all = span_ * static_cast<std::size_t>(device_count);
  void* reserved = reserve(2 * all);
  if (reserved == MAP_FAILED) {
    fail("reserving", 2 * all);
  }
  device_mappings_ = static_cast<std::byte*>(reserved);
  distance_ = static_cast<std::ptrdiff_t>(all);
  for (int device = 0; in_process && device < device_count; ++device) {
    const int file = memfd_create(kFileName, MFD_CLOEXEC);
    if (file < 0) {
      fail("creating a file", own);
    }
    files_.push_back(file);
    check_file_size(own, "a device (OPENREG_DEVICE_MEMORY)");
    if (ftruncate(file, static_cast<off_t>(own)) != 0) {
      fail("sizing a file", own);
    }
    if (!map_twice(device_mapping(device), own, file, 0)) {
      fail("mapping", own);
    }
  }
}

AddressSpace::~AddressSpace() {
  if (device_mappings_ != nullptr) {
    munmap(device_mappings_, 2 * static_cast<std::size_t>(distance_));
  }
  for (const int file : files_) {
    close(file);
  }
}

int AddressSpace::device_of(const void* pointer) const noexcept {
  const auto* address = static_cast<const std::byte*>(pointer);
  if (address < device_mappings_ || address >= end()) {
    return -1;
  }
  return static_cast<int>(
      static_cast<std::size_t>(address - device_mappings_) / span_);
}

void AddressSpace::release(int device, std::size_t offset, std::size_t size)
    const {
  const CancellationDeferred deferred;
  if (fallocate(
          files_[static_cast<std::size_t>(device)],
          FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
          static_cast<off_t>(offset),
          static_cast<off_t>(size)) != 0) {
    fail("releasing", size);
  }
}

bool AddressSpace::map_twice(
    std::byte* begin,
    std::size_t size,
    int file,
    std::size_t offset) const {
  const auto map = [&](std::byte* where, int access) {
    return mmap(
               where,
               size,
               access,
               MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
               file,
               static_cast<off_t>(offset)) != MAP_FAILED;
  };
  // [docs: double-mapping]
  std::byte* for_kernels = begin + distance_;
  const bool mapped =
      map(begin, PROT_NONE) && map(for_kernels, PROT_READ | PROT_WRITE);
  // [docs: end]
  if (mapped) {
    // A forked child may not use the devices. Without this it would share the
    // memory with its parent and could corrupt it.
    madvise(for_kernels, size, MADV_DONTFORK);
  }
  return mapped;
}

void AddressSpace::map_foreign(
    std::byte* begin,
    std::size_t size,
    int file,
    std::size_t offset) const {
  if (!map_twice(begin, size, file, offset)) {
    const int reason = errno;
    unmap_foreign(begin, size);
    errno = reason;
    fail("mapping", size);
  }
}

void AddressSpace::unmap_foreign(std::byte* begin, std::size_t size) const {
  // The addresses stay reserved.
  for (std::byte* where : {begin, begin + distance_}) {
    if (mmap(
            where,
            size,
            PROT_NONE,
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
            -1,
            0) == MAP_FAILED) {
      fail("unmapping", size);
    }
  }
}

void AddressSpace::protect(std::byte* pages, std::size_t size, bool open)
    const {
  if (mprotect(pages, size, open ? PROT_READ | PROT_WRITE : PROT_NONE) != 0) {
    fail("protecting", size);
  }
}

std::size_t AddressSpace::page_size() noexcept {
  static const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

} // namespace openreg
