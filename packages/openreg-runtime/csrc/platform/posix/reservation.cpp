// SPDX-License-Identifier: BSD-3-Clause
// Reservations without a name, and mappings that a handler takes away from
// children.
#include "platform/mapping.h"
#include "platform/posix/inheritance.h"
#include "platform/process.h"

#include <map>
#include <mutex>
#include <pthread.h>
#include <sys/mman.h>

namespace openreg::platform {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::byte*, std::size_t> sizes; // by start; none overlap
};

Registry& registry() {
  static auto* value = new Registry;
  return *value;
}

/// Removes [begin, begin + size) from the registered mappings.
void cut_out(std::byte* begin, std::size_t size) {
  auto& sizes = registry().sizes;
  std::byte* const end = begin + size;
  auto each = sizes.upper_bound(begin);
  if (each != sizes.begin()) {
    --each;
  }
  while (each != sizes.end() && each->first < end) {
    std::byte* const first = each->first;
    std::byte* const last = first + each->second;
    if (last <= begin) {
      ++each;
      continue;
    }
    each = sizes.erase(each);
    if (first < begin) {
      sizes[first] = static_cast<std::size_t>(begin - first);
    }
    if (end < last) {
      sizes[end] = static_cast<std::size_t>(last - end);
    }
  }
}

/// The addresses stay reserved in the child.
void unmap_in_child() {
  for (const auto& [begin, size] : registry().sizes) {
    mmap(
        begin,
        size,
        PROT_NONE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
        -1,
        0);
  }
  registry().sizes.clear();
  registry().mutex.unlock();
}

} // namespace

Result reserve(std::size_t size, const char*, std::byte*& begin) {
  void* reserved = mmap(
      nullptr,
      size,
      PROT_NONE,
      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
      -1,
      0);
  if (reserved == MAP_FAILED) {
    return Result::last();
  }
  begin = static_cast<std::byte*>(reserved);
  return {};
}

void keep_from_children(std::byte* begin, std::size_t size) {
  static const int registered = pthread_atfork(
      [] { registry().mutex.lock(); },
      [] { registry().mutex.unlock(); },
      unmap_in_child);
  static_cast<void>(registered);
  const std::lock_guard lock(registry().mutex);
  cut_out(begin, size);
  registry().sizes[begin] = size;
}

void forget_mappings(std::byte* begin, std::size_t size) noexcept {
  const std::lock_guard lock(registry().mutex);
  cut_out(begin, size);
}

} // namespace openreg::platform
