// SPDX-License-Identifier: BSD-3-Clause
// The blocks of pools, and their release.
#include "device/memory_pool.h"

#include "base/error.h"
#include "base/handle_table.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace openreg {
namespace {

using Pools = HandleTable<MemoryPool, orMemPool_t, HandleKind::kMemPool>;

Pools& pools() {
  static auto* value = new Pools;
  return *value;
}

} // namespace

MemoryPools::MemoryPools(int device, IsPinned is_pinned, Release release)
    : device_(device),
      is_pinned_(std::move(is_pinned)),
      release_(std::move(release)),
      no_pool_{.device = device} {
  current_ = &create(0);
}

MemoryPool& MemoryPools::create(std::size_t max_size) {
  auto unused =
      std::find_if(pools_.begin(), pools_.end(), [](const auto& pool) {
        return !pool->live && pool->reserved == 0;
      });
  if (unused == pools_.end()) {
    pools_.push_back(
        std::unique_ptr<MemoryPool>(new MemoryPool{.device = device_}));
    unused = std::prev(pools_.end());
  }
  MemoryPool& pool = **unused;
  pool.live = true;
  pool.handle = nullptr;
  pool.max_size = max_size;
  pool.threshold = 0;
  pool.reserved_high = pool.used_high = 0;
  return pool;
}

void MemoryPools::destroy(MemoryPool& pool) {
  pool.live = false;
  if (current_ == &pool) {
    current_ = &default_pool();
  }
  collect();
}

void MemoryPools::clear() {
  while (!blocks_.empty()) { // each once, also if one cannot be released
    const auto [offset, block] = *blocks_.begin();
    if (block.spare) {
      erase_spare(*block.pool, offset);
    }
    blocks_.erase(blocks_.begin());
    if (block.spare) {
      release_(offset);
    }
  }
  no_pool_.reserved = no_pool_.used = 0;
  for (const auto& pool : pools_) {
    pool->live = pool == pools_.front();
    pool->threshold = 0;
    pool->reserved = pool->reserved_high = pool->used = pool->used_high = 0;
  }
  current_ = &default_pool();
}

void MemoryPools::check_live(const MemoryPool& pool) {
  if (!pool.live) {
    throw Failure(orErrorInvalidHandle, "pool was destroyed during the call");
  }
}

bool MemoryPools::owns(std::size_t offset) const {
  const auto block = blocks_.find(offset);
  return block != blocks_.end() && block->second.pool != &no_pool_;
}

std::optional<std::size_t> MemoryPools::reachable(std::size_t offset) const {
  const auto block = blocks_.find(offset);
  const bool reached = block != blocks_.end() &&
      (!block->second.spare || !passed(block->second));
  return reached ? std::optional(block->second.footprint) : std::nullopt;
}

std::optional<std::size_t> MemoryPools::reuse(
    MemoryPool& pool,
    std::size_t footprint,
    const Stream& stream) {
  // An allocation from a kernel comes before the enqueued work, also on its own
  // stream.
  const bool in_order = !stream.runs_here();
  // Blocks are not split: a block that is far too large stays for a larger
  // request.
  for (auto spare = pool.spares.lower_bound({footprint, 0});
       spare != pool.spares.end() && spare->first / 2 <= footprint;
       ++spare) {
    const std::size_t offset = spare->second;
    const Block& block = blocks_.at(offset);
    if ((in_order && block.stream == &stream) || passed(block)) {
      erase_spare(pool, offset);
      pool.used += block.footprint;
      pool.used_high = std::max(pool.used_high, pool.used);
      return offset;
    }
  }
  return std::nullopt;
}

bool MemoryPools::may_grow(const MemoryPool& pool, std::size_t footprint)
    const noexcept {
  return pool.max_size == 0 ||
      (pool.reserved <= pool.max_size &&
       footprint <= pool.max_size - pool.reserved);
}

void MemoryPools::add(
    MemoryPool& pool,
    std::size_t offset,
    std::size_t footprint) {
  blocks_.emplace(offset, Block{&pool, footprint});
  pool.reserved += footprint;
  pool.reserved_high = std::max(pool.reserved_high, pool.reserved);
  pool.used += footprint;
  pool.used_high = std::max(pool.used_high, pool.used);
}

void MemoryPools::free(std::size_t offset, Stream* stream) {
  Block& block = blocks_.at(offset);
  block.pool->spares.emplace(block.footprint, offset);
  ++spares_;
  block.spare = true;
  block.stream = stream;
  block.place = stream != nullptr ? stream->progress().first : 0;
  block.pool->used -= block.footprint;
}

void MemoryPools::free_foreign(
    std::size_t offset,
    std::size_t footprint,
    Stream& stream) {
  add(no_pool_, offset, footprint);
  free(offset, &stream);
}

void MemoryPools::erase_spare(MemoryPool& pool, std::size_t offset) {
  Block& block = blocks_.at(offset);
  pool.spares.erase({block.footprint, offset});
  block.spare = false;
  --spares_;
}

std::vector<MemoryPools::Pending> MemoryPools::pending(
    const MemoryPool& pool) const {
  std::map<Stream*, std::uint64_t> places;
  for (const auto& [footprint, offset] : pool.spares) {
    const Block& block = blocks_.at(offset);
    if (!passed(block)) {
      auto& place = places[block.stream];
      place = std::max(place, block.place);
    }
  }
  return {places.begin(), places.end()};
}

bool MemoryPools::passed(const Block& block) {
  return block.stream == nullptr ||
      block.stream->progress().second >= block.place;
}

bool MemoryPools::give_back(MemoryPool& pool, std::uint64_t keep) {
  bool any = false;
  for (auto spare = pool.spares.begin();
       spare != pool.spares.end() && pool.reserved > keep;) {
    const auto [footprint, offset] = *spare++; // which may be erased
    if (!passed(blocks_.at(offset)) || is_pinned_(offset)) {
      continue;
    }
    // Before release_(), which may throw after it has ended the block.
    erase_spare(pool, offset);
    blocks_.erase(offset);
    pool.reserved -= footprint;
    release_(offset);
    any = true;
  }
  return any;
}

void MemoryPools::collect() {
  give_back(no_pool_, 0);
  for (const auto& pool : pools_) {
    if (!pool->live) {
      give_back(*pool, 0);
    }
  }
}

void MemoryPools::trim() {
  give_back(no_pool_, 0);
  for (const auto& pool : pools_) {
    give_back(*pool, pool->live ? pool->threshold : 0);
  }
}

void MemoryPools::trim(MemoryPool& pool, std::uint64_t keep) {
  give_back(pool, keep);
}

bool MemoryPools::release_all() {
  bool any = give_back(no_pool_, 0);
  for (const auto& pool : pools_) {
    any |= give_back(*pool, 0);
  }
  return any;
}

MemoryPool& pool_of(orMemPool_t pool) {
  return pools().get(pool, "pool");
}

orMemPool_t handle_of(MemoryPool& pool) {
  if (pool.handle == nullptr) {
    pool.handle = pools().insert(&pool);
  }
  return pool.handle;
}

void end_memory_pool(orMemPool_t pool) {
  pools().remove(pool, "pool");
}

void end_memory_pools(const MemoryPool& kept) {
  pools().remove_if([&](const MemoryPool& pool) {
    return pool.device == kept.device && &pool != &kept;
  });
}

} // namespace openreg
