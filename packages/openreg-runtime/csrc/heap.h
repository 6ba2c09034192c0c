// SPDX-License-Identifier: BSD-3-Clause
// Hands out blocks of one device's address range: best fit, split on
// allocation, merged with free neighbours when freed. Not thread safe.
//
// The address range is larger than the capacity, so that fragmentation does not
// fail an allocation that the capacity allows (a real device remaps pages).
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace openreg {

class Heap {
 public:
  /// Called with the offset and size of pages that nothing uses any more.
  using Release = std::function<void(std::size_t offset, std::size_t size)>;

  struct Block {
    std::size_t offset; // from the start of the range
    std::size_t size;   // as requested
  };

  Heap(std::size_t span, std::size_t capacity, Release release);

  /// The offset of a new block, or nothing if the capacity does not allow it.
  std::optional<std::size_t> allocate(std::size_t size);
  /// Frees the block that starts at `offset`; false if there is none.
  bool free(std::size_t offset);
  /// The live block around `offset`.
  std::optional<Block> find(std::size_t offset) const;

  /// Frees all blocks and gives all pages back.
  void clear();

  /// Bytes that blocks take, rounded up to the alignment.
  std::size_t used() const noexcept {
    return used_;
  }
  /// Bytes of the live blocks as requested.
  std::size_t requested() const noexcept {
    return requested_;
  }
  std::size_t block_count() const noexcept {
    return extents_.size() - free_.size();
  }
  std::size_t capacity() const noexcept {
    return capacity_;
  }
  /// May be less than what is used: then nothing can be allocated.
  void set_capacity(std::size_t capacity) noexcept {
    capacity_ = capacity;
  }

  static constexpr std::size_t kAlignment = 512;

 private:
  struct Extent {
    std::size_t length;    // rounded up
    std::size_t requested; // 0 while free
    std::size_t dirty;     // bytes of a free extent that may hold pages
  };
  using Extents = std::map<std::size_t, Extent>;

  void erase_free(Extents::iterator extent);

  const std::size_t span_;
  std::size_t capacity_;
  std::size_t used_ = 0;
  std::size_t requested_ = 0;
  Release release_;
  Extents extents_;
  std::set<std::pair<std::size_t, std::size_t>> free_; // (length, offset)
};

} // namespace openreg
