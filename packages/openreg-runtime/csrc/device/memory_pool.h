// SPDX-License-Identifier: BSD-3-Clause
// Stream-ordered allocation.
//
// A freed block of a pool becomes a *spare* of the pool, together with the
// place of the free in its stream. The same stream can reuse the block
// immediately, because its later work runs after the free. Another stream can
// reuse it once the first stream has passed that place. Memory above the pool's
// threshold returns to the device at the next synchronization.
//
// A block of orMalloc can be freed in stream order, too. It is a spare without
// a pool, and returns to the device once its place was passed.
#pragma once

#include "stream/stream.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace openreg {

/// A pool. The device's lock guards all members except `device`. Never deleted,
/// because a stale handle may name it.
struct MemoryPool {
  const int device;
  bool live = false;            // until it is destroyed
  orMemPool_t handle = nullptr; // null before anybody has asked for it
  std::size_t max_size = 0;     // bytes; 0: unlimited
  std::uint64_t threshold = 0;
  // Footprints in bytes of all blocks, and of the blocks in use.
  std::uint64_t reserved = 0;
  std::uint64_t reserved_high = 0;
  std::uint64_t used = 0;
  std::uint64_t used_high = 0;
  std::set<std::pair<std::size_t, std::size_t>> spares{}; // (footprint, offset)
};

/// The pools of one device. Not thread safe, except any_spares().
class MemoryPools {
 public:
  /// True for a spare that is in use by work outside its stream's order.
  using IsPinned = std::function<bool(std::size_t offset)>;
  /// Called with the offset of a spare that returns to the device.
  using Release = std::function<void(std::size_t offset)>;

  MemoryPools(int device, IsPinned is_pinned, Release release);

  MemoryPool& default_pool() noexcept {
    return *pools_.front();
  }
  /// The pool of allocations that name no pool.
  MemoryPool& current() noexcept {
    return *current_;
  }
  void set_current(MemoryPool& pool) noexcept {
    current_ = &pool;
  }
  MemoryPool& create(std::size_t max_size);
  /// The pool object stays until its blocks are freed.
  void destroy(MemoryPool& pool);
  /// Frees all blocks and all pools except the default pool, which is
  /// reinitialized.
  void clear();

  /// True if no pool has a block and no freed block awaits its release.
  bool empty() const noexcept {
    return blocks_.empty();
  }
  /// True if pools of any device have spares.
  static bool any_spares() noexcept {
    return spares_.load(std::memory_order_relaxed) > 0;
  }
  /// Throws orErrorInvalidHandle if the pool was destroyed since it was looked
  /// up.
  static void check_live(const MemoryPool& pool);
  /// True for a block of a pool.
  bool owns(std::size_t offset) const;
  /// The footprint of a block that enqueued work may still use: it is not
  /// freed, or its stream has not reached the free. Empty for other blocks.
  std::optional<std::size_t> reachable(std::size_t offset) const;

  /// A spare of `pool` that fits a block of `footprint` bytes for `stream`.
  std::optional<std::size_t>
  reuse(MemoryPool& pool, std::size_t footprint, const Stream& stream);
  /// True if the pool may grow by `footprint` bytes.
  bool may_grow(const MemoryPool& pool, std::size_t footprint) const noexcept;
  /// Adds a new block.
  void add(MemoryPool& pool, std::size_t offset, std::size_t footprint);
  /// Turns a block of a pool into a spare. `stream` is null if no work uses it.
  void free(std::size_t offset, Stream* stream);
  /// Turns a block of orMalloc into a spare.
  void free_foreign(std::size_t offset, std::size_t footprint, Stream& stream);
  /// A stream, and the place at which it has passed all frees of a pool.
  using Pending = std::pair<Stream*, std::uint64_t>;
  /// The streams that have not yet reached a free of `pool`.
  std::vector<Pending> pending(const MemoryPool& pool) const;

  // The following functions release spares whose place was passed.
  /// Spares without a pool, or of a destroyed pool.
  void collect();
  /// Also the memory of pools above their thresholds.
  void trim();
  /// The memory of one pool above `keep` bytes.
  void trim(MemoryPool& pool, std::uint64_t keep);
  /// All spares. Returns whether there was any.
  bool release_all();

 private:
  struct Block {
    MemoryPool* pool; // no_pool_ for one of orMalloc
    std::size_t footprint;
    bool spare = false;
    Stream* stream = nullptr; // of the free
    std::uint64_t place = 0;  // the number of commands before it
  };

  static bool passed(const Block& block);
  /// Releases spares of the pool while it has more than `keep` bytes.
  bool give_back(MemoryPool& pool, std::uint64_t keep);
  void erase_spare(MemoryPool& pool, std::size_t offset);

  const int device_;
  const IsPinned is_pinned_;
  const Release release_;
  std::vector<std::unique_ptr<MemoryPool>> pools_; // the default one first
  MemoryPool* current_;
  std::map<std::size_t, Block> blocks_;              // by offset
  MemoryPool no_pool_;                               // the spares of orMalloc
  static inline std::atomic<std::size_t> spares_{0}; // of all devices
};

/// The pool behind a handle. Throws orErrorInvalidHandle.
MemoryPool& pool_of(orMemPool_t pool);
/// The handle of a pool. The handle of a default pool is created on first use.
orMemPool_t handle_of(MemoryPool& pool);
/// Throws orErrorInvalidHandle.
void end_memory_pool(orMemPool_t pool);
/// Ends the handles of all pools of a device except its default pool.
void end_memory_pools(const MemoryPool& kept);

} // namespace openreg
