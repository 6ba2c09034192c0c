// SPDX-License-Identifier: BSD-3-Clause
// The free blocks of one device: the best fit, splitting and merging. Not
// thread safe.
#pragma once

#include "memory/block.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace openreg::aten {

class FreeBlocks {
 public:
  // Sorted by pool, stream and size, and an array: the nodes of a set would
  // cost each operator a malloc and a free.
  using Set = std::vector<Block*>;

  const Set& of_kind(bool small) const {
    return small ? small_ : large_;
  }
  /// What a request and a block have to agree in.
  struct Place {
    c10::MempoolId_t pool;
    orStream_t stream;
  };
  /// The place in its set of the first block of a stream that is large enough,
  /// or one behind the stream's blocks.
  size_t find_fit(bool small, const Place& place, size_t size) const;

  /// An empty object for a new block.
  Block* make();
  /// Takes out the smallest block at `place` that is large enough, or of these
  /// the smallest that is idle once `completed` commands are completed. Null if
  /// there is none, or if it may not serve.
  static constexpr uint64_t kNotIdle = std::numeric_limits<uint64_t>::max();
  Block* take(bool small, const Place& place, size_t size, uint64_t completed);
  /// Leaves the first `size` bytes in a block that was taken, and puts the
  /// others in.
  void split(Block* block, size_t size, uint64_t age);
  /// Puts a block in, merged with its free neighbours; says how many it had.
  size_t add(Block* block);
  /// Takes out a block whose memory is gone.
  void drop(Block* block);
  /// Takes out all of them.
  void drop_all();
  /// Makes an object that is in none of the sets one for a new block.
  void recycle(Block* block);

 private:
  Set& set_of(const Block* block) {
    return block->small ? small_ : large_;
  }
  void insert(Block* block);
  void erase(Block* block);
  bool merge(Block* block, Block* neighbour);

  Set small_;
  Set large_;
  Set spare_; // objects for new blocks
};

} // namespace openreg::aten
