// SPDX-License-Identifier: BSD-3-Clause
// The free blocks of one device: best fit, splitting and merging. Not thread
// safe.
#pragma once

#include "memory/block.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace openreg::aten {

class FreeBlocks {
 public:
  // Sorted by pool, stream and size. It is an array, because the nodes of a set
  // would cost a malloc and a free per operator.
  using Set = std::vector<Block*>;

  const Set& of_kind(bool small) const {
    return small ? small_ : large_;
  }
  /// The properties in which a block must match a request.
  struct Place {
    c10::MempoolId_t pool;
    orStream_t stream;
  };
  /// Returns the index of the first block of a stream that is large enough, or
  /// the index after the blocks of the stream.
  size_t find_fit(bool small, const Place& place, size_t size) const;

  /// Returns an empty object for a new block.
  Block* make();
  /// Removes and returns the smallest block at `place` that is large enough and
  /// idle after `completed` commands. With kNotIdle it may be in use by pending
  /// work. Returns null if there is none, or if the block must not be used for
  /// this size.
  static constexpr uint64_t kNotIdle = std::numeric_limits<uint64_t>::max();
  Block* take(bool small, const Place& place, size_t size, uint64_t completed);
  /// Removes a block.
  void erase(Block* block);
  /// Keeps the first `size` bytes in a block that was removed, and adds the
  /// rest as a free block.
  void split(Block* block, size_t size, uint64_t age);
  /// Adds a block, merged with its free neighbours. Returns how many it had.
  size_t add(Block* block);
  /// Removes a block whose memory was released.
  void drop(Block* block);
  /// Removes all blocks.
  void drop_all();
  /// Keeps the object of a block that is in no set, for a new block.
  void recycle(Block* block);

 private:
  Set& set_of(const Block* block) {
    return block->small ? small_ : large_;
  }
  void insert(Block* block);
  bool merge(Block* block, Block* neighbour);

  Set small_;
  Set large_;
  Set spare_; // objects for new blocks
};

} // namespace openreg::aten
