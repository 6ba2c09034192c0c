// SPDX-License-Identifier: BSD-3-Clause
// The best-fit heap.
#include "memory/heap.h"

#include "memory/address_space.h"

#include <algorithm>
#include <iterator>
#include <vector>

namespace openreg {
namespace {

// Free extents keep their pages until this many bytes may be resident, so that
// a warm block is reused without page faults. Then all of them go back to the
// system: what that costs is spread over the frees that led to it.
constexpr std::size_t kKeepDirty = std::size_t{64} << 20;

// A freed block that keeps its addresses costs about 100 bytes of host memory.
constexpr std::size_t kMaxRetired = std::size_t{1} << 20;

} // namespace

Heap::Heap(
    std::size_t span,
    std::size_t capacity,
    bool guarded,
    Release release)
    : span_(span),
      guarded_(guarded),
      unit_(guarded ? AddressSpace::page_size() : kAlignment),
      guard_(guarded ? AddressSpace::page_size() : 0),
      capacity_(capacity),
      release_(std::move(release)) {
  apart_.reserve(2); // the most for one free
  reset_extents();
}

void Heap::reset_extents() {
  extents_.clear();
  free_.clear();
  extents_.emplace(0, Extent{span_, 0, {}});
  free_.emplace(span_, 0);
  dirty_extents_.clear();
  dirty_ = 0;
}

std::optional<std::size_t> Heap::allocate(std::size_t size) {
  if (size > capacity_) {
    return std::nullopt;
  }
  const std::size_t taken = footprint(size);
  if (used_ > capacity_ || taken > capacity_ - used_) {
    return std::nullopt;
  }
  const std::size_t length = taken + guard_;
  const auto fit = find_fit(length);
  if (fit == free_.end()) {
    return std::nullopt;
  }
  const auto extent = extents_.find(fit->second);
  free_.erase(fit);
  const std::size_t offset = extent->first;
  const std::size_t rest = extent->second.length - length;
  const Dirty dirty = extent->second.dirty;
  set_dirty(extent, {});
  if (rest > 0) {
    const auto left = extents_.emplace_hint(
        std::next(extent), offset + length, Extent{rest, 0, {}});
    if (dirty.end > length) {
      const std::size_t begin = std::max(dirty.begin, length) - length;
      const std::size_t end = dirty.end - length;
      set_dirty(left, {begin, end, std::min(dirty.bytes, end - begin)});
    }
    free_.emplace(rest, offset + length);
  }
  extent->second = {length, size, {}, State::kLive};
  used_ += taken;
  requested_ += size;
  return offset;
}

bool Heap::free(std::size_t offset) {
  const auto extent = extents_.find(offset);
  if (extent == extents_.end() || extent->second.state != State::kLive) {
    return false;
  }
  requested_ -= extent->second.requested;
  free(extent);
  return true;
}

void Heap::free(Extents::iterator extent) {
  used_ -= extent->second.length - guard_;
  if (guarded_) {
    retire(extent);
    return;
  }
  const std::size_t length = extent->second.length;
  set_dirty(extent, {0, length, length});
  make_free(extent);
  if (dirty_ > kKeepDirty) {
    release_free();
  }
}

bool Heap::keep(std::size_t offset) {
  const auto extent = extents_.find(offset);
  if (extent == extents_.end() || extent->second.state != State::kLive) {
    return false;
  }
  extent->second.state = State::kKept;
  requested_ -= extent->second.requested;
  ++kept_;
  return true;
}

void Heap::drop(std::size_t offset) {
  --kept_;
  free(extents_.find(offset));
}

void Heap::revive(std::size_t offset, std::size_t size) {
  Extent& extent = extents_.find(offset)->second;
  extent.state = State::kLive;
  extent.requested = size;
  requested_ += size;
  --kept_;
}

void Heap::clear() {
  if (!guarded_ && kept_ == 0) {
    reset_extents();
    used_ = requested_ = 0;
    release_(0, span_);
    return;
  }
  std::vector<std::size_t> live;
  for (const auto& [offset, extent] : extents_) {
    if (extent.state == State::kLive) {
      live.push_back(offset);
    }
  }
  for (const std::size_t offset : live) {
    free(offset);
  }
  release_free();
}

std::optional<Heap::Block> Heap::find(std::size_t offset) const {
  const auto block = trace(offset);
  const bool inside =
      block && block->live && offset - block->offset < block->size;
  return inside ? block : std::nullopt;
}

std::optional<Heap::Block> Heap::trace(std::size_t offset) const {
  const auto next = extents_.upper_bound(offset);
  if (next == extents_.begin()) {
    return std::nullopt;
  }
  const auto& [begin, extent] = *std::prev(next);
  if (extent.state == State::kFree || offset - begin >= extent.length) {
    return std::nullopt;
  }
  return Block{begin, extent.requested, extent.state == State::kLive};
}

void Heap::set_dirty(Extents::iterator extent, Dirty dirty) {
  Extent& object = extent->second;
  if (object.dirty.bytes == 0 && dirty.bytes > 0) {
    if (unused_nodes_.empty()) {
      unused_nodes_.emplace_back();
    }
    object.place = unused_nodes_.begin();
    *object.place = extent->first;
    dirty_extents_.splice(dirty_extents_.end(), unused_nodes_, object.place);
  } else if (object.dirty.bytes > 0 && dirty.bytes == 0) {
    unused_nodes_.splice(unused_nodes_.begin(), dirty_extents_, object.place);
  }
  dirty_ += dirty.bytes;
  dirty_ -= object.dirty.bytes;
  object.dirty = dirty;
}

/// Releases the whole pages of all free extents.
void Heap::release_free() {
  while (!dirty_extents_.empty()) {
    const auto extent = extents_.find(dirty_extents_.front());
    Dirty dirty = extent->second.dirty;
    set_dirty(extent, {});
    dirty.begin += extent->first;
    dirty.end += extent->first;
    release_pages(extent, dirty);
  }
}

/// Releases the pages of a range of the heap in an extent, except the pages
/// that it shares with its neighbours.
void Heap::release_pages(Extents::iterator extent, const Dirty& dirty) const {
  const std::size_t page = AddressSpace::page_size();
  const auto down = [page](std::size_t at) { return at / page * page; };
  const auto up = [page, down](std::size_t at) { return down(at + page - 1); };
  const std::size_t offset = extent->first;
  const std::size_t begin = std::max(up(offset), down(dirty.begin));
  const std::size_t end =
      std::min(up(dirty.end), down(offset + extent->second.length));
  if (begin < end) {
    release_(begin, end - begin);
  }
}

Heap::Free::iterator Heap::find_fit(std::size_t length) {
  auto fit = free_.lower_bound({length, 0});
  while (fit == free_.end() && !retired_.empty()) {
    recycle_oldest();
    fit = free_.lower_bound({length, 0});
  }
  return fit;
}

void Heap::retire(Extents::iterator extent) {
  extent->second.state = State::kRetired;
  retired_.push_back(extent->first);
  if (retired_.size() > kMaxRetired) {
    recycle_oldest();
  }
  release_(extent->first, extent->second.length - guard_);
}

void Heap::recycle_oldest() {
  const auto oldest = extents_.find(retired_.front());
  retired_.pop_front();
  make_free(oldest);
}

/// Merges an extent that was not free with its free neighbours.
void Heap::make_free(Extents::iterator extent) {
  extent->second.state = State::kFree;
  extent->second.requested = 0;
  const auto next = std::next(extent);
  if (next != extents_.end() && next->second.state == State::kFree) {
    erase_free(next);
    absorb(extent, next, next);
  }
  if (extent != extents_.begin()) {
    const auto previous = std::prev(extent);
    if (previous->second.state == State::kFree) {
      erase_free(previous);
      absorb(previous, extent, previous);
      extent = previous;
    }
  }
  free_.emplace(extent->second.length, extent->first);
  while (!apart_.empty()) {
    const Dirty apart = apart_.back();
    apart_.pop_back();
    release_pages(extent, apart); // last, because it can fail
  }
}

/// Merges a free extent with the free extent behind it. If their dirty bytes
/// are too far apart for one range, only the newer range remains, and
/// make_free() releases the older one. So the released bytes are at most twice
/// the freed bytes, except for whole pages.
void Heap::absorb(
    Extents::iterator left,
    Extents::iterator right,
    Extents::iterator older) {
  if (right->second.dirty.bytes > 0) {
    const Dirty first = left->second.dirty;
    Dirty second = right->second.dirty;
    second.begin += left->second.length;
    second.end += left->second.length;
    Dirty merged = second;
    if (first.bytes > 0) {
      merged = {first.begin, second.end, first.bytes + second.bytes};
      if (merged.end - merged.begin > 2 * merged.bytes) {
        const bool keeps_second = older == left;
        merged = keeps_second ? second : first;
        apart_.push_back(keeps_second ? first : second);
        apart_.back().begin += left->first;
        apart_.back().end += left->first;
      }
    }
    set_dirty(right, {});
    set_dirty(left, merged);
  }
  left->second.length += right->second.length;
  extents_.erase(right);
}

void Heap::erase_free(Extents::iterator extent) {
  free_.erase({extent->second.length, extent->first});
}

} // namespace openreg
