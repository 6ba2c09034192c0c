// SPDX-License-Identifier: BSD-3-Clause
// Memory that is allocated and freed in the order of streams.
//
// A block of a pool that is freed stays with the pool, as its *spare*. The
// place of the free in its stream is kept with it: the same stream may have the
// block again at once, for whatever uses it there comes after the free; another
// one once the stream has passed that place. What a pool has beyond its
// threshold goes back to the device at the next synchronization.
//
// A block of orMalloc can be freed in stream order too. It is a spare without a
// pool, and goes back to the device once its place was passed.
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

/// What a pool is and holds. All but the device changes under the lock of the
/// device. Never deleted, as a stale handle may name it.
struct MemoryPool {
  const int device;
  bool live = false;            // until it is destroyed
  orMemPool_t handle = nullptr; // null before anybody has asked for it
  std::size_t max_size = 0;     // bytes; 0 is no limit
  std::uint64_t threshold = 0;
  // Footprints of blocks in bytes: of all, and of the ones that are not freed.
  std::uint64_t reserved = 0;
  std::uint64_t reserved_high = 0;
  std::uint64_t used = 0;
  std::uint64_t used_high = 0;
  std::set<std::pair<std::size_t, std::size_t>> spares{}; // (footprint, offset)
};

/// The pools of one device. Not thread safe, but for any_spares().
class MemoryPools {
 public:
  /// True for a spare that work uses just now which its stream does not order.
  using IsPinned = std::function<bool(std::size_t offset)>;
  /// Called with the offset of a spare that goes back to the device.
  using Release = std::function<void(std::size_t offset)>;

  MemoryPools(int device, IsPinned is_pinned, Release release);

  MemoryPool& default_pool() noexcept {
    return *pools_.front();
  }
  /// Where allocations without a pool come from.
  MemoryPool& current() noexcept {
    return *current_;
  }
  void set_current(MemoryPool& pool) noexcept {
    current_ = &pool;
  }
  MemoryPool& create(std::size_t max_size);
  /// The pool lives on for its handed-out blocks.
  void destroy(MemoryPool& pool);
  /// Ends all blocks and all pools but the default one, which is as new.
  void clear();

  /// True if no block belongs to a pool, or is freed and not back yet.
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
  /// True for a block that a pool made.
  bool owns(std::size_t offset) const;
  /// The footprint of a block that enqueued work may still use, as it is not
  /// freed or its stream has not come to the free; nothing for others.
  std::optional<std::size_t> reachable(std::size_t offset) const;

  /// A spare of `pool` for a block of `stream` that takes `footprint` bytes.
  std::optional<std::size_t>
  reuse(MemoryPool& pool, std::size_t footprint, const Stream& stream);
  /// True if the pool may grow by so much.
  bool may_grow(const MemoryPool& pool, std::size_t footprint) const noexcept;
  /// A new block.
  void add(MemoryPool& pool, std::size_t offset, std::size_t footprint);
  /// Makes a block of a pool a spare. `stream` is null if no work uses it.
  void free(std::size_t offset, Stream* stream);
  /// The same for a block of orMalloc.
  void free_foreign(std::size_t offset, std::size_t footprint, Stream& stream);
  /// A stream, and how far it has to come for all frees of a pool on it.
  using Pending = std::pair<Stream*, std::uint64_t>;
  /// The streams that have yet to come to a free of `pool`.
  std::vector<Pending> pending(const MemoryPool& pool) const;

  // What follows gives spares back whose place was passed:
  /// of no pool, or of one that was destroyed;
  void collect();
  /// also what pools have beyond their thresholds;
  void trim();
  /// what a pool has beyond `keep` bytes;
  void trim(MemoryPool& pool, std::uint64_t keep);
  /// all. True if there was any.
  bool release_all();

 private:
  struct Block {
    MemoryPool* pool; // no_pool_ for one of orMalloc
    std::size_t footprint;
    bool spare = false;
    Stream* stream = nullptr; // of the free
    std::uint64_t place = 0;  // so many commands come before it
  };

  static bool passed(const Block& block);
  /// Gives spares of the pool back, as long as it has more than `keep` bytes.
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
/// The handle of a pool. That of a default pool is made when it is first asked
/// for.
orMemPool_t handle_of(MemoryPool& pool);
/// Throws orErrorInvalidHandle.
void end_memory_pool(orMemPool_t pool);
/// Ends the handles of all pools of a device but that of its default one.
void end_memory_pools(const MemoryPool& kept);

} // namespace openreg
