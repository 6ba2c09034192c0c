// SPDX-License-Identifier: BSD-3-Clause
// Best fit over cached blocks, with splitting and merging.
#include "device/block_pool.h"

#include "device/device.h"
#include "device/error.h"

#include <algorithm>

namespace openreg::aten {
namespace {

// Sizes in bytes. Requests are rounded up to kMinBlock; those up to kSmall come
// from segments of kSmallSegment, those below kMinLargeAlloc from segments of
// kLargeSegment, and larger ones from a segment of their own size rounded up to
// kRoundLarge.
constexpr size_t kMinBlock = 512;
constexpr size_t kSmall = size_t{1} << 20;
constexpr size_t kSmallSegment = size_t{2} << 20;
constexpr size_t kLargeSegment = size_t{20} << 20;
constexpr size_t kMinLargeAlloc = size_t{10} << 20;
constexpr size_t kRoundLarge = size_t{2} << 20;

size_t round_up(size_t size, size_t unit) {
  return (size + unit - 1) / unit * unit;
}

size_t segment_size(size_t size, bool small) {
  if (small) {
    return kSmallSegment;
  }
  return size < kMinLargeAlloc ? kLargeSegment : round_up(size, kRoundLarge);
}

bool should_split(size_t rest, bool small) {
  return small ? rest >= kMinBlock : rest > kSmall;
}

} // namespace

/// Applies a change to the statistics of all blocks and of the block's kind.
template <typename Change>
void BlockPool::count(bool small, const Change& change) {
  using c10::CachingAllocator::StatType;
  change(static_cast<size_t>(StatType::AGGREGATE));
  change(
      static_cast<size_t>(small ? StatType::SMALL_POOL : StatType::LARGE_POOL));
}

void* BlockPool::allocate(size_t requested) {
  if (requested > SIZE_MAX - kRoundLarge) {
    return nullptr;
  }
  const size_t size = round_up(requested, kMinBlock);
  const bool small = size <= kSmall;
  Block* block = take_cached(size, small);
  if (block == nullptr) {
    block = make_segment(segment_size(size, small), small);
  }
  if (block == nullptr) {
    stats_.num_alloc_retries += 1;
    release_cached();
    block = make_segment(segment_size(size, small), small);
  }
  if (block == nullptr) {
    stats_.num_ooms += 1;
    return nullptr;
  }
  split(block, size);
  block->allocated = true;
  block->requested = requested;
  allocated_[block->pointer] = block;
  count(small, [&](size_t kind) {
    stats_.allocation[kind].increase(1);
    stats_.allocated_bytes[kind].increase(block->size);
    stats_.active[kind].increase(1);
    stats_.active_bytes[kind].increase(block->size);
    stats_.requested_bytes[kind].increase(requested);
  });
  return block->pointer;
}

size_t BlockPool::free(void* pointer) {
  const auto found = allocated_.find(pointer);
  if (found == allocated_.end()) {
    return 0;
  }
  Block* block = found->second;
  const size_t size = block->size;
  count(block->small, [&](size_t kind) {
    stats_.allocation[kind].decrease(1);
    stats_.allocated_bytes[kind].decrease(size);
    stats_.requested_bytes[kind].decrease(block->requested);
  });
  if (block->holds > 0) {
    block->freed = true;
  } else {
    reclaim(block);
  }
  return size;
}

bool BlockPool::hold(const void* pointer) {
  const auto found = allocated_.find(pointer);
  if (found == allocated_.end()) {
    return false;
  }
  found->second->holds += 1;
  return true;
}

void BlockPool::release_hold(void* pointer) {
  Block* block = allocated_.at(pointer);
  block->holds -= 1;
  if (block->holds == 0 && block->freed) {
    block->freed = false;
    reclaim(block);
  }
}

/// Puts a block that nothing uses any more into the cache.
void BlockPool::reclaim(Block* block) {
  allocated_.erase(block->pointer);
  const size_t size = block->size;
  count(block->small, [&](size_t kind) {
    stats_.active[kind].decrease(1);
    stats_.active_bytes[kind].decrease(size);
  });
  block->allocated = false;
  const bool was_split = block->previous || block->next;
  if (was_split) {
    count(block->small, [&](size_t kind) {
      stats_.inactive_split[kind].increase(1);
      stats_.inactive_split_bytes[kind].increase(size);
    });
  }
  merge(block, block->previous);
  merge(block, block->next);
  if (was_split && !block->previous && !block->next) { // a whole segment again
    count(block->small, [&](size_t kind) {
      stats_.inactive_split[kind].decrease(1);
      stats_.inactive_split_bytes[kind].decrease(block->size);
    });
  }
  insert(cached(block->small), block);
}

BlockPool::Block* BlockPool::make_block() {
  if (spare_.empty()) {
    return new Block{};
  }
  Block* block = spare_.back();
  spare_.pop_back();
  *block = Block{};
  return block;
}

void BlockPool::insert(Blocks& blocks, Block* block) {
  blocks.insert(
      std::lower_bound(blocks.begin(), blocks.end(), block, BySize{}), block);
}

void BlockPool::erase(Blocks& blocks, Block* block) {
  blocks.erase(std::lower_bound(blocks.begin(), blocks.end(), block, BySize{}));
}

BlockPool::Block* BlockPool::take_cached(size_t size, bool small) {
  Block key{};
  key.size = size;
  Blocks& blocks = cached(small);
  const auto fit =
      std::lower_bound(blocks.begin(), blocks.end(), &key, BySize{});
  if (fit == blocks.end()) {
    return nullptr;
  }
  Block* block = *fit;
  blocks.erase(fit);
  if (block->previous || block->next) {
    count(small, [&](size_t kind) {
      stats_.inactive_split[kind].decrease(1);
      stats_.inactive_split_bytes[kind].decrease(block->size);
    });
  }
  return block;
}

BlockPool::Block* BlockPool::make_segment(size_t size, bool small) {
  const CurrentDevice scope(device_);
  void* pointer = nullptr;
  const orError_t error = orMalloc(&pointer, size);
  if (error == orErrorMemoryAllocation) {
    return nullptr;
  }
  OPENREG_CHECK(error);
  stats_.num_device_alloc += 1;
  count(small, [&](size_t kind) {
    stats_.segment[kind].increase(1);
    stats_.reserved_bytes[kind].increase(size);
  });
  Block* block = make_block();
  block->pointer = static_cast<std::byte*>(pointer);
  block->size = size;
  block->small = small;
  return block;
}

void BlockPool::split(Block* block, size_t size) {
  const size_t rest = block->size - size;
  if (!should_split(rest, block->small)) {
    return;
  }
  Block* remaining = make_block();
  remaining->pointer = block->pointer + size;
  remaining->size = rest;
  remaining->small = block->small;
  remaining->previous = block;
  remaining->next = block->next;
  if (block->next) {
    block->next->previous = remaining;
  }
  block->next = remaining;
  block->size = size;
  insert(cached(block->small), remaining);
  count(block->small, [&](size_t kind) {
    stats_.inactive_split[kind].increase(1);
    stats_.inactive_split_bytes[kind].increase(rest);
  });
}

/// Absorbs a free neighbour into a free block.
void BlockPool::merge(Block* block, Block* neighbour) {
  if (neighbour == nullptr || neighbour->allocated) {
    return;
  }
  erase(cached(block->small), neighbour);
  if (block->previous == neighbour) {
    block->pointer = neighbour->pointer;
    block->previous = neighbour->previous;
    if (block->previous) {
      block->previous->next = block;
    }
  } else {
    block->next = neighbour->next;
    if (block->next) {
      block->next->previous = block;
    }
  }
  block->size += neighbour->size;
  spare_.push_back(neighbour);
  count(block->small, [&](size_t kind) { // two free parts became one
    stats_.inactive_split[kind].decrease(1);
  });
}

void BlockPool::release_cached() {
  release(small_);
  release(large_);
}

void BlockPool::release(Blocks& blocks) {
  for (auto it = blocks.begin(); it != blocks.end();) {
    Block* block = *it;
    if (block->previous || block->next) {
      ++it;
      continue;
    }
    // Nothing holds a cached block, and waiting here could be waiting for the
    // kernel that allocates.
    OPENREG_CHECK(orFreeUnused(block->pointer));
    stats_.num_device_free += 1;
    count(block->small, [&](size_t kind) {
      stats_.segment[kind].decrease(1);
      stats_.reserved_bytes[kind].decrease(block->size);
    });
    it = blocks.erase(it);
    spare_.push_back(block);
  }
}

} // namespace openreg::aten
