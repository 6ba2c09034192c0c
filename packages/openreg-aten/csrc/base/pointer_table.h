// SPDX-License-Identifier: BSD-3-Clause
// Finds an object of a growing list by its address.
#pragma once

#include <c10/macros/Macros.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <unordered_map>

namespace openreg::aten {

/// Of one list, to which elements are only added. It scans a short one, and
/// keeps a hash table of a long one, as operators on lists of tensors have it.
class PointerTable {
 public:
  /// The place of the first element whose pointer is `wanted`.
  template <typename List, typename PointerOf>
  std::optional<std::size_t>
  find(const List& list, const void* wanted, const PointerOf& pointer_of) {
    constexpr std::size_t kShort = 32;
    if (C10_LIKELY(list.size() <= kShort)) {
      for (std::size_t i = 0; i < list.size(); ++i) {
        if (pointer_of(list[i]) == wanted) {
          return i;
        }
      }
      return std::nullopt;
    }
    if (places_ == nullptr) {
      places_ = std::make_unique<Places>();
    }
    for (; known_ < list.size(); ++known_) {
      places_->emplace(pointer_of(list[known_]), known_);
    }
    const auto found = places_->find(wanted);
    return found == places_->end() ? std::nullopt
                                   : std::optional(found->second);
  }
  void clear() {
    places_.reset();
    known_ = 0;
  }

 private:
  using Places = std::unordered_map<const void*, std::size_t>;

  std::unique_ptr<Places> places_;
  std::size_t known_ = 0;
};

} // namespace openreg::aten
