// SPDX-License-Identifier: BSD-3-Clause
// What pools hold, and when they give it back.
#include "memory_pool.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace openreg {
namespace {

constexpr std::uint64_t kEverything = ~std::uint64_t{0};

} // namespace

MemoryPools::MemoryPools(int device, Release release)
    : device_(device), release_(std::move(release)) {
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
  for (const auto& [offset, block] : blocks_) {
    if (block.spare) {
      release_(offset);
    }
  }
  blocks_.clear();
  spares_ = 0;
  for (const auto& pool : pools_) {
    pool->live = pool == pools_.front();
    pool->threshold = 0;
    pool->reserved = pool->reserved_high = pool->used = pool->used_high = 0;
  }
  current_ = &default_pool();
}

bool MemoryPools::owns(std::size_t offset) const {
  const auto block = blocks_.find(offset);
  return block != blocks_.end() && block->second.pool != nullptr;
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
  // A kernel that asks runs before what is enqueued, also on its own stream.
  const bool in_order = !stream.runs_here();
  auto best = blocks_.end();
  for (auto block = blocks_.begin(); block != blocks_.end(); ++block) {
    const Block& spare = block->second;
    // Blocks are not split: one that is far too large waits for another.
    if (spare.spare && spare.pool == &pool && spare.footprint >= footprint &&
        spare.footprint / 2 <= footprint &&
        (best == blocks_.end() || spare.footprint < best->second.footprint) &&
        ((in_order && spare.stream == &stream) || passed(spare))) {
      best = block;
    }
  }
  if (best == blocks_.end()) {
    return std::nullopt;
  }
  best->second.spare = false;
  --spares_;
  pool.used += best->second.footprint;
  pool.used_high = std::max(pool.used_high, pool.used);
  return best->first;
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
  block.spare = true;
  ++spares_;
  block.stream = stream;
  block.place = stream != nullptr ? stream->progress().first : 0;
  if (block.pool != nullptr) {
    block.pool->used -= block.footprint;
  }
}

void MemoryPools::free_foreign(
    std::size_t offset,
    std::size_t footprint,
    Stream& stream) {
  blocks_.emplace(offset, Block{nullptr, footprint});
  free(offset, &stream);
}

std::vector<Stream*> MemoryPools::pending(const MemoryPool& pool) const {
  std::vector<Stream*> streams;
  for (const auto& [offset, block] : blocks_) {
    if (block.spare && block.pool == &pool && !passed(block)) {
      streams.push_back(block.stream);
    }
  }
  return streams;
}

bool MemoryPools::passed(const Block& block) {
  return block.stream == nullptr ||
      block.stream->progress().second >= block.place;
}

/// `keep` tells how many bytes a pool keeps.
template <typename Keep>
bool MemoryPools::give_back(const Keep& keep) {
  if (!has_spares()) {
    return false;
  }
  bool any = false;
  for (auto entry = blocks_.begin(); entry != blocks_.end();) {
    const Block block = entry->second;
    const bool surplus = block.spare &&
        (block.pool == nullptr || block.pool->reserved > keep(*block.pool));
    if (!surplus || !passed(block) || !release_(entry->first)) {
      ++entry;
      continue;
    }
    if (block.pool != nullptr) {
      block.pool->reserved -= block.footprint;
    }
    entry = blocks_.erase(entry);
    --spares_;
    any = true;
  }
  return any;
}

void MemoryPools::collect() {
  give_back([](const MemoryPool& pool) { return pool.live ? kEverything : 0; });
}

void MemoryPools::trim() {
  give_back(
      [](const MemoryPool& pool) { return pool.live ? pool.threshold : 0; });
}

void MemoryPools::trim(const MemoryPool& only, std::uint64_t keep) {
  give_back([&](const MemoryPool& pool) {
    return &pool == &only ? keep : kEverything;
  });
}

bool MemoryPools::release_all() {
  return give_back([](const MemoryPool&) { return std::uint64_t{0}; });
}

} // namespace openreg
