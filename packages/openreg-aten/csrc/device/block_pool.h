// SPDX-License-Identifier: BSD-3-Clause
// The cached memory of one device: segments taken from the runtime, split into
// blocks. Sizes, rounding and the choice of a block follow the documented rules
// of CUDA's caching allocator. Not thread safe.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/flat_hash_map.h>

#include <cstddef>
#include <vector>

namespace openreg::aten {

class BlockPool {
 public:
  using Stats = c10::CachingDeviceAllocator::DeviceStats;

  explicit BlockPool(c10::DeviceIndex device) : device_(device) {}

  /// Null if the device has no room, also after cached segments were released.
  void* allocate(size_t size);
  /// The size in bytes of the block that was freed; 0 if `pointer` is none. A
  /// block that is held stays active until the last hold ends.
  size_t free(void* pointer);
  /// False if `pointer` is not the start of an allocated block.
  bool hold(const void* pointer);
  void release_hold(void* pointer);
  void release_cached();

  Stats& stats() {
    return stats_;
  }

 private:
  struct Block {
    std::byte* pointer;
    size_t size;
    size_t requested;
    bool small;
    bool allocated; // to a tensor, or held
    int holds;
    bool freed;      // while held
    Block* previous; // neighbours within the segment
    Block* next;
  };
  struct BySize {
    bool operator()(const Block* left, const Block* right) const {
      return left->size != right->size ? left->size < right->size
                                       : left->pointer < right->pointer;
    }
  };
  // Sorted, and an array: the nodes of a set would cost each operator a malloc
  // and a free.
  using Blocks = std::vector<Block*>;

  Block* make_block();
  void reclaim(Block* block);
  Block* take_cached(size_t size, bool small);
  Block* make_segment(size_t size, bool small);
  void split(Block* block, size_t size);
  void merge(Block* block, Block* neighbour);
  void release(Blocks& blocks);
  Blocks& cached(bool small) {
    return small ? small_ : large_;
  }
  static void insert(Blocks& blocks, Block* block);
  static void erase(Blocks& blocks, Block* block);
  template <typename Change>
  void count(bool small, const Change& change);

  c10::DeviceIndex device_;
  Blocks small_;
  Blocks large_;
  Blocks spare_; // objects for new blocks
  ska::flat_hash_map<const void*, Block*> allocated_;
  Stats stats_;
};

} // namespace openreg::aten
