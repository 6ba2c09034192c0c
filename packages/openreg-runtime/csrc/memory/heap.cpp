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
  reset_extents();
}

void Heap::reset_extents() {
  extents_.clear();
  free_.clear();
  extents_.emplace(0, Extent{span_, 0, 0});
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
  const std::size_t dirty = extent->second.dirty;
  set_dirty(extent, 0);
  if (rest > 0) {
    const auto left = extents_.emplace_hint(
        std::next(extent), offset + length, Extent{rest, 0, 0});
    set_dirty(left, dirty > length ? dirty - length : 0);
    free_.emplace(rest, offset + length);
  }
  extent->second = {length, size, 0, State::kLive};
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
  set_dirty(extent, extent->second.length);
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

void Heap::set_dirty(Extents::iterator extent, std::size_t bytes) {
  Extent& object = extent->second;
  if (object.dirty == 0 && bytes > 0) {
    if (unused_nodes_.empty()) {
      unused_nodes_.emplace_back();
    }
    object.place = unused_nodes_.begin();
    *object.place = extent->first;
    dirty_extents_.splice(dirty_extents_.end(), unused_nodes_, object.place);
  } else if (object.dirty > 0 && bytes == 0) {
    unused_nodes_.splice(unused_nodes_.begin(), dirty_extents_, object.place);
  }
  dirty_ += bytes;
  dirty_ -= object.dirty;
  object.dirty = bytes;
}

/// Releases the whole pages of all free extents.
void Heap::release_free() {
  const std::size_t page = AddressSpace::page_size();
  for (const std::size_t offset : dirty_extents_) {
    Extent& extent = extents_.find(offset)->second;
    const std::size_t begin = (offset + page - 1) / page * page;
    // Keeps the page in which the next block may begin.
    const std::size_t end = std::min(
        (offset + extent.dirty + page - 1) / page * page,
        (offset + extent.length) / page * page);
    if (begin < end) {
      release_(begin, end - begin);
    }
    extent.dirty = 0;
  }
  unused_nodes_.splice(unused_nodes_.end(), dirty_extents_);
  dirty_ = 0;
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
  const auto absorb = [this](Extents::iterator left, Extents::iterator right) {
    if (right->second.dirty > 0) {
      set_dirty(left, left->second.length + right->second.dirty);
      set_dirty(right, 0);
    }
    left->second.length += right->second.length;
    extents_.erase(right);
  };
  const auto next = std::next(extent);
  if (next != extents_.end() && next->second.state == State::kFree) {
    erase_free(next);
    absorb(extent, next);
  }
  if (extent != extents_.begin()) {
    const auto previous = std::prev(extent);
    if (previous->second.state == State::kFree) {
      erase_free(previous);
      absorb(previous, extent);
      extent = previous;
    }
  }
  free_.emplace(extent->second.length, extent->first);
}

void Heap::erase_free(Extents::iterator extent) {
  free_.erase({extent->second.length, extent->first});
}

} // namespace openreg
