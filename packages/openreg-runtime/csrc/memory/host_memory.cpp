// SPDX-License-Identifier: BSD-3-Clause
// The registry of pinned memory.
#include "memory/host_memory.h"

#include "base/error.h"
#include "platform/host_pages.h"
#include "platform/mapping.h"

#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>

namespace openreg::host_memory {
namespace {

constexpr std::size_t kAlignment = 64;

/// The alignment of a block. A large copy is several times slower if its
/// destination lies a few bytes further into its page than its source. Large
/// blocks therefore begin with a page, as large device blocks often do.
std::size_t alignment_of(std::size_t size) {
  return size < platform::page_size() ? kAlignment : platform::page_size();
}

struct Pinned {
  std::size_t size;
  bool registered; // by orHostRegister, else a block of orMallocHost
};
using Ranges = std::map<std::uintptr_t, Pinned>; // by start; none overlap

struct Registry {
  std::shared_mutex mutex;
  Ranges ranges;
};

Registry& registry() {
  static auto* value = new Registry;
  return *value;
}

std::uintptr_t address_of(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

/// The first range that overlaps [begin, end).
Ranges::iterator
first_in(Ranges& ranges, std::uintptr_t begin, std::uintptr_t end) {
  auto range = ranges.upper_bound(begin);
  if (range != ranges.begin()) {
    const auto previous = std::prev(range);
    if (begin - previous->first < previous->second.size) {
      return previous;
    }
  }
  return range != ranges.end() && range->first < end ? range : ranges.end();
}

std::string describe(const Ranges::value_type& range) {
  return "the " + std::to_string(range.second.size) + " bytes at " +
      hex(reinterpret_cast<void*>(range.first)) + ", which " +
      (range.second.registered ? "orHostRegister" : "orMallocHost") + " pinned";
}

} // namespace

void* allocate(std::size_t size) {
  void* pointer = platform::allocate_aligned(alignment_of(size), size);
  if (pointer == nullptr) {
    throw Failure(
        orErrorMemoryAllocation,
        "the host cannot allocate " + std::to_string(size) +
            " bytes of pinned memory");
  }
  const std::uintptr_t begin = address_of(pointer);
  const std::unique_lock lock(registry().mutex);
  Ranges& ranges = registry().ranges;
  // A registration here belongs to memory that was freed without
  // orHostUnregister.
  for (auto range = first_in(ranges, begin, begin + size);
       range != ranges.end();
       range = first_in(ranges, begin, begin + size)) {
    ranges.erase(range);
  }
  ranges.emplace(begin, Pinned{size, false});
  return pointer;
}

void free(void* pointer) {
  {
    const std::unique_lock lock(registry().mutex);
    Ranges& ranges = registry().ranges;
    const auto range = ranges.find(address_of(pointer));
    if (range == ranges.end()) {
      throw Failure(
          orErrorInvalidValue,
          "hostPtr " + hex(pointer) +
              " is not the start of a live pinned block: it was freed already, "
              "or not allocated by orMallocHost");
    }
    if (range->second.registered) {
      throw Failure(
          orErrorInvalidValue,
          "hostPtr " + hex(pointer) +
              " was pinned by orHostRegister: call orHostUnregister instead");
    }
    ranges.erase(range);
  }
  platform::free_aligned(pointer);
}

void add(void* pointer, std::size_t size) {
  const std::uintptr_t begin = address_of(pointer);
  if (size > UINTPTR_MAX - begin || !platform::is_mapped(begin, begin + size)) {
    throw Failure(
        orErrorInvalidValue,
        "ptr " + hex(pointer) + ": not all of its " + std::to_string(size) +
            " bytes are mapped in this process");
  }
  const std::unique_lock lock(registry().mutex);
  Ranges& ranges = registry().ranges;
  const auto taken = first_in(ranges, begin, begin + size);
  if (taken != ranges.end()) {
    throw Failure(
        orErrorHostMemoryAlreadyRegistered,
        std::to_string(size) + " bytes at ptr " + hex(pointer) + " overlap " +
            describe(*taken));
  }
  ranges.emplace(begin, Pinned{size, true});
}

void remove(void* pointer) {
  const std::uintptr_t begin = address_of(pointer);
  const std::unique_lock lock(registry().mutex);
  Ranges& ranges = registry().ranges;
  const auto range = first_in(ranges, begin, begin + 1);
  if (range == ranges.end()) {
    throw Failure(
        orErrorHostMemoryNotRegistered,
        "ptr " + hex(pointer) +
            " is not registered: it was unregistered already, or never "
            "registered");
  }
  if (!range->second.registered) {
    throw Failure(
        orErrorHostMemoryNotRegistered,
        "ptr " + hex(pointer) + " is in " + describe(*range) +
            ": call orFreeHost instead");
  }
  if (range->first != begin) {
    throw Failure(
        orErrorInvalidValue,
        "ptr " + hex(pointer) + " is not the start of " + describe(*range));
  }
  ranges.erase(range);
}

std::optional<Block> find(const void* pointer) {
  const std::uintptr_t address = address_of(pointer);
  const std::shared_lock lock(registry().mutex);
  Ranges& ranges = registry().ranges;
  const auto range = first_in(ranges, address, address + 1);
  if (range == ranges.end()) {
    return std::nullopt;
  }
  return Block{reinterpret_cast<void*>(range->first), range->second.size};
}

Usage usage() {
  Usage result{};
  const std::shared_lock lock(registry().mutex);
  for (const auto& [begin, range] : registry().ranges) {
    if (range.registered) {
      ++result.registrations;
    } else {
      ++result.blocks;
      result.bytes += range.size;
    }
  }
  return result;
}

} // namespace openreg::host_memory
