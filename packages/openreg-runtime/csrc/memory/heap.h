// SPDX-License-Identifier: BSD-3-Clause
// Hands out blocks of one device's address range: best fit, split on
// allocation, merged with free neighbours when freed. Not thread safe.
//
// The address range is larger than the capacity, so that fragmentation does not
// fail an allocation that the capacity allows (a real device remaps pages).
//
// To find accesses outside of live blocks, a heap can be *guarded*. Then each
// block has separate whole pages with an unused page behind them, and a freed
// block keeps its addresses until they are needed. Its pages are released
// immediately, and it counts as free.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace openreg {

class Heap {
 public:
  /// Called with the offset and size of unused pages.
  using Release = std::function<void(std::size_t offset, std::size_t size)>;

  struct Block {
    std::size_t offset; // from the start of the range
    std::size_t size;   // as requested
    bool live;          // false once it is freed
  };

  Heap(std::size_t span, std::size_t capacity, bool guarded, Release release);

  /// Returns the offset of a new block, or nothing if the capacity is
  /// exhausted.
  std::optional<std::size_t> allocate(std::size_t size);
  /// Frees the block that starts at `offset`; false if there is none.
  bool free(std::size_t offset);
  /// Ends a block like free(), but keeps its bytes until drop() or revive():
  /// they count as used and are not reused.
  bool keep(std::size_t offset);
  /// Frees bytes that keep() has kept.
  void drop(std::size_t offset);
  /// Makes kept bytes a block of `size` bytes again, which must fit.
  void revive(std::size_t offset, std::size_t size);
  /// The live block around `offset`.
  std::optional<Block> find(std::size_t offset) const;
  /// The block whose addresses or guard contain `offset`. In a guarded heap it
  /// may be a freed block.
  std::optional<Block> trace(std::size_t offset) const;

  /// Frees all blocks and releases all pages, except kept bytes.
  void clear();

  /// The bytes that a block of `size` bytes occupies.
  std::size_t footprint(std::size_t size) const noexcept {
    return (size + unit_ - 1) / unit_ * unit_;
  }

  /// The footprint of all live and kept blocks, in bytes.
  std::size_t used() const noexcept {
    return used_;
  }
  /// Bytes of the live blocks as requested.
  std::size_t requested() const noexcept {
    return requested_;
  }
  std::size_t block_count() const noexcept {
    return extents_.size() - free_.size() - retired_.size() - kept_;
  }
  std::size_t capacity() const noexcept {
    return capacity_;
  }
  /// May be less than used(): then nothing can be allocated.
  void set_capacity(std::size_t capacity) noexcept {
    capacity_ = capacity;
  }

  static constexpr std::size_t kAlignment = 512;

 private:
  enum class State { kFree, kLive, kKept, kRetired };
  /// The bytes of a free extent that may have pages: at most `bytes`, all in
  /// [begin, end), which is at most twice as long.
  struct Dirty {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t bytes = 0;
  };
  struct Extent {
    std::size_t length;    // the footprint and the guard
    std::size_t requested; // 0 while free
    Dirty dirty;           // empty unless the extent is free
    State state = State::kFree;
    std::list<std::size_t>::iterator place{}; // in dirty_extents_, if dirty
  };
  using Extents = std::map<std::size_t, Extent>;
  using Free = std::set<std::pair<std::size_t, std::size_t>>;

  void reset_extents();
  void free(Extents::iterator extent);
  Free::iterator find_fit(std::size_t length);
  void retire(Extents::iterator extent);
  void recycle_oldest();
  void make_free(Extents::iterator extent);
  void absorb(
      Extents::iterator left,
      Extents::iterator right,
      Extents::iterator older);
  void set_dirty(Extents::iterator extent, Dirty dirty);
  void release_free();
  void release_pages(Extents::iterator extent, const Dirty& dirty) const;
  void erase_free(Extents::iterator extent);
  Extents::const_iterator around(std::size_t offset) const;

  const std::size_t span_;
  const bool guarded_;
  const std::size_t unit_;  // of footprints
  const std::size_t guard_; // bytes behind each block
  std::size_t capacity_;
  std::size_t used_ = 0;
  std::size_t requested_ = 0;
  std::size_t kept_ = 0;  // extents
  std::size_t dirty_ = 0; // of all free extents
  Release release_;
  Extents extents_;
  Free free_;                            // (length, offset)
  std::deque<std::size_t> retired_;      // offsets, oldest first
  std::list<std::size_t> dirty_extents_; // offsets of the free ones
  std::list<std::size_t> unused_nodes_;  // for the above: no allocations
  std::vector<Dirty> apart_;             // offsets; make_free() releases them
};

} // namespace openreg
