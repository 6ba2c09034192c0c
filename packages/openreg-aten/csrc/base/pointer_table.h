// SPDX-License-Identifier: BSD-3-Clause
// Finds an object in a growing list by its address.
#pragma once

#include <c10/macros/Macros.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace openreg::aten {

/// Indexes one list, to which elements are only appended. It scans a short
/// list, and hashes the pointers of a long one, as in operators on tensor
/// lists.
class PointerTable {
 public:
  /// Returns the index of the first element whose pointer is `wanted`.
  template <typename List, typename PointerOf>
  std::optional<std::size_t>
  find(const List& list, const void* wanted, const PointerOf& pointer_of) {
    constexpr std::size_t kScanLimit = 16;
    if (C10_LIKELY(list.size() <= kScanLimit)) {
      for (std::size_t i = 0; i < list.size(); ++i) {
        if (pointer_of(list[i]) == wanted) {
          return i;
        }
      }
      return std::nullopt;
    }
    if (C10_UNLIKELY(2 * list.size() > mask_)) {
      make_slots(list.size());
    }
    for (; known_ < list.size(); ++known_) {
      std::uint32_t& slot = slot_of(list, pointer_of(list[known_]), pointer_of);
      if (slot == 0) {
        slot = static_cast<std::uint32_t>(known_ + 1);
      }
    }
    const std::size_t place = slot_of(list, wanted, pointer_of);
    return place == 0 ? std::nullopt : std::optional<std::size_t>(place - 1);
  }
  void clear() {
    slots_.reset();
    mask_ = known_ = 0;
  }

 private:
  /// Clears the slots. At most half of them are used until the list has twice
  /// `size`.
  void make_slots(std::size_t size) {
    std::uint32_t count = 1;
    while (count <= 4 * size) {
      count *= 2;
    }
    slots_ = std::make_unique<std::uint32_t[]>(count);
    mask_ = count - 1;
    known_ = 0;
  }

  /// Returns the slot of the pointer, or the empty slot where it belongs.
  template <typename List, typename PointerOf>
  std::uint32_t&
  slot_of(const List& list, const void* pointer, const PointerOf& pointer_of) {
    // The multiplier of Fibonacci hashing, whose high bits depend on all bits.
    constexpr std::uint64_t kMultiplier = 0x9E3779B97F4A7C15;
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    std::size_t slot = (address * kMultiplier) >> 32;
    for (;; ++slot) {
      std::uint32_t& place = slots_[slot & mask_];
      if (place == 0 || pointer_of(list[place - 1]) == pointer) {
        return place;
      }
    }
  }

  std::unique_ptr<std::uint32_t[]> slots_; // index + 1, or 0 if empty
  std::uint32_t mask_ = 0;  // the number of slots, a power of two, minus 1
  std::uint32_t known_ = 0; // elements that have slots
};

} // namespace openreg::aten
