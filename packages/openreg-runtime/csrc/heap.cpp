// SPDX-License-Identifier: BSD-3-Clause
// The best-fit heap.
#include "heap.h"

#include "address_space.h"

#include <iterator>

namespace openreg {
namespace {

// Free extents keep their pages until this many may be resident: a warm block
// is then reused without page faults, and large ones go back to the system.
constexpr std::size_t kKeepDirty = std::size_t{4} << 20;

std::size_t round_up(std::size_t size, std::size_t unit) {
  return (size + unit - 1) / unit * unit;
}

} // namespace

Heap::Heap(std::size_t span, std::size_t capacity, Release release)
    : span_(span), capacity_(capacity), release_(std::move(release)) {
  extents_.emplace(0, Extent{span, 0, 0});
  free_.emplace(span, 0);
}

void Heap::erase_free(Extents::iterator extent) {
  free_.erase({extent->second.length, extent->first});
}

std::optional<std::size_t> Heap::allocate(std::size_t size) {
  if (size > capacity_) {
    return std::nullopt;
  }
  const std::size_t length = round_up(size, kAlignment);
  if (used_ > capacity_ || length > capacity_ - used_) {
    return std::nullopt;
  }
  const auto fit = free_.lower_bound({length, 0});
  if (fit == free_.end()) {
    return std::nullopt;
  }
  const auto extent = extents_.find(fit->second);
  free_.erase(fit);
  const std::size_t offset = extent->first;
  const std::size_t rest = extent->second.length - length;
  if (rest > 0) {
    const std::size_t dirty =
        extent->second.dirty > length ? extent->second.dirty - length : 0;
    extents_.emplace_hint(
        std::next(extent), offset + length, Extent{rest, 0, dirty});
    free_.emplace(rest, offset + length);
  }
  extent->second = {length, size, 0};
  used_ += length;
  requested_ += size;
  return offset;
}

bool Heap::free(std::size_t offset) {
  auto extent = extents_.find(offset);
  if (extent == extents_.end() || extent->second.requested == 0) {
    return false;
  }
  used_ -= extent->second.length;
  requested_ -= extent->second.requested;
  extent->second.requested = 0;
  extent->second.dirty = extent->second.length;

  const auto absorb = [this](Extents::iterator left, Extents::iterator right) {
    left->second.length += right->second.length;
    left->second.dirty += right->second.dirty;
    extents_.erase(right);
  };
  const auto next = std::next(extent);
  if (next != extents_.end() && next->second.requested == 0) {
    erase_free(next);
    absorb(extent, next);
  }
  if (extent != extents_.begin()) {
    const auto previous = std::prev(extent);
    if (previous->second.requested == 0) {
      erase_free(previous);
      absorb(previous, extent);
      extent = previous;
    }
  }
  if (extent->second.dirty > kKeepDirty) {
    const std::size_t page = AddressSpace::page_size();
    const std::size_t begin = round_up(extent->first, page);
    const std::size_t end =
        (extent->first + extent->second.length) / page * page;
    release_(begin, end - begin);
    extent->second.dirty = 0;
  }
  free_.emplace(extent->second.length, extent->first);
  return true;
}

void Heap::clear() {
  extents_.clear();
  free_.clear();
  extents_.emplace(0, Extent{span_, 0, 0});
  free_.emplace(span_, 0);
  used_ = requested_ = 0;
  release_(0, span_);
}

std::optional<Heap::Block> Heap::find(std::size_t offset) const {
  auto extent = extents_.upper_bound(offset);
  if (extent == extents_.begin()) {
    return std::nullopt;
  }
  --extent;
  if (extent->second.requested == 0) {
    return std::nullopt;
  }
  return Block{extent->first, extent->second.requested};
}

} // namespace openreg
