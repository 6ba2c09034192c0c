// SPDX-License-Identifier: BSD-3-Clause
// The double mapping of device memory.
#include "memory/address_space.h"

#include "base/error.h"
#include "base/file_limit.h"
#include "base/system_thread.h"
#include "platform/library.h"

#include <string>
#include <utility>

namespace openreg {
namespace {

using platform::Access;
using platform::Result;

[[noreturn]] void fail(const char* what, std::size_t bytes, Result result) {
  throw Failure(
      orErrorMemoryAllocation,
      std::string(what) + " of " + std::to_string(bytes) +
          " bytes of device address space failed: " + result.text() +
          (result.is_out_of_files()
               ? "; each device needs a file: raise the open file limit "
                 "(ulimit -n), or lower OPENREG_DEVICE_COUNT"
               : "; lower OPENREG_DEVICE_MEMORY or OPENREG_DEVICE_COUNT"));
}

void check(Result result, const char* what, std::size_t bytes) {
  if (!result) {
    fail(what, bytes, result);
  }
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
  check(
      platform::reserve(
          2 * all, platform::kDeviceReservation, device_mappings_),
      "reserving",
      2 * all);
  distance_ = static_cast<std::ptrdiff_t>(all);
  for (int device = 0; in_process && device < device_count; ++device) {
    check_file_size(
        platform::created_size(own, kRoom), "a device (OPENREG_DEVICE_MEMORY)");
    platform::File file;
    check(
        platform::create_memory_file(platform::kDeviceFile, own, kRoom, file),
        "creating a file",
        own);
    check(map_twice(device_mapping(device), own, file, 0), "mapping", own);
    files_.push_back(std::move(file));
  }
}

AddressSpace::~AddressSpace() {
  if (device_mappings_ != nullptr) {
    platform::end_reservation(
        device_mappings_, 2 * static_cast<std::size_t>(distance_));
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
  check(platform::release_pages(file(device), offset, size), "releasing", size);
}

Result AddressSpace::map_twice(
    std::byte* begin,
    std::size_t size,
    const platform::File& file,
    std::size_t offset) const {
  const auto map = [&](std::byte* where, Access access) {
    return platform::map_reserved(where, size, file, offset, access);
  };
  // [docs: double-mapping]
  std::byte* for_kernels = begin + distance_;
  const Result mapped = map(begin, Access::kNone);
  return mapped ? map(for_kernels, Access::kReadWrite) : mapped;
  // [docs: end]
}

void AddressSpace::map_foreign(
    std::byte* begin,
    std::size_t size,
    const platform::File& file,
    std::size_t offset) const {
  if (const Result mapped = map_twice(begin, size, file, offset); !mapped) {
    unmap_foreign(begin, size);
    fail("mapping", size, mapped);
  }
}

void AddressSpace::unmap_foreign(std::byte* begin, std::size_t size) const {
  for (std::byte* where : {begin, begin + distance_}) {
    check(platform::unmap_reserved(where, size), "unmapping", size);
  }
}

void AddressSpace::protect(std::byte* pages, std::size_t size, bool open)
    const {
  check(
      platform::protect(pages, size, open ? Access::kReadWrite : Access::kNone),
      "protecting",
      size);
}

} // namespace openreg
