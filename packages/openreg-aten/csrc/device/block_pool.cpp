// SPDX-License-Identifier: BSD-3-Clause
// Best fit over cached blocks, with splitting and merging.
#include "device/block_pool.h"

#include "device/device.h"
#include "device/error.h"

#include <c10/core/AllocatorConfig.h>

#include <algorithm>
#include <bit>
#include <limits>

namespace openreg::aten {
namespace {

using Config = c10::CachingAllocator::AcceleratorAllocatorConfig;

// Sizes in bytes. Requests are rounded up to kMinBlock; those up to kSmall come
// from segments of kSmallSegment, those below kMinLargeAlloc from segments of
// 20 MiB (large_segment_size), and larger ones from a segment of their own size
// rounded up to kRoundLarge.
constexpr size_t kMinBlock = 512;
constexpr size_t kSmall = size_t{1} << 20;
constexpr size_t kSmallSegment = size_t{2} << 20;
constexpr size_t kMinLargeAlloc = size_t{10} << 20;
constexpr size_t kRoundLarge = size_t{2} << 20;

constexpr size_t kLargest = std::numeric_limits<size_t>::max() / 2; // request

size_t round_up(size_t size, size_t unit) {
  return (size + unit - 1) / unit * unit;
}

/// The size of the block for a request.
size_t block_size(size_t requested) {
  if (requested <= kMinBlock) {
    return kMinBlock;
  }
  const size_t divisions = Config::roundup_power2_divisions(requested);
  if (divisions > 1 && requested > kMinBlock * divisions) {
    return round_up(requested, std::bit_floor(requested) / divisions);
  }
  return round_up(requested, kMinBlock);
}

size_t segment_for(size_t size) {
  if (size <= kSmall) {
    return kSmallSegment;
  }
  return size < kMinLargeAlloc ? Config::large_segment_size()
                               : round_up(size, kRoundLarge);
}

/// The setting that decides it is never less than 20 MiB.
bool is_oversize(size_t size) {
  return C10_UNLIKELY(
      size >= kMinLargeAlloc && size >= Config::max_split_size());
}

bool should_split(size_t size, size_t rest, bool small) {
  return small ? rest >= kMinBlock : !is_oversize(size) && rest > kSmall;
}

struct Progress {
  uint64_t enqueued = 0;
  uint64_t completed = 0;
};

/// A stream that is gone does no more work.
Progress progress_of(orStream_t stream) {
  Progress progress;
  if (orStreamGetProgress(stream, &progress.enqueued, &progress.completed) !=
      orSuccess) {
    static_cast<void>(orGetLastError());
    return {};
  }
  return progress;
}

bool garbage_is_collected(const std::optional<size_t>& allowed) {
  return allowed && Config::garbage_collection_threshold() > 0;
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

size_t BlockPool::segment_size(size_t requested) {
  return requested > kLargest ? requested : segment_for(block_size(requested));
}

BlockPool::Allocation BlockPool::allocate(const Request& request) {
  if (request.size > kLargest) {
    return {};
  }
  reclaim_reached();
  const size_t size = block_size(request.size);
  const bool small = size <= kSmall;
  const uint64_t completed =
      request.user == User::kWork ? 0 : progress_of(request.stream).completed;
  Block* block = take_cached(size, small, request, completed);
  if (block == nullptr) {
    if (C10_UNLIKELY(garbage_is_collected(allowed_))) {
      collect_garbage(request.context);
    }
    block = make_segment(segment_for(size), small, request);
  }
  if (block == nullptr && release_oversize(size, small, request)) {
    block = make_segment(segment_for(size), small, request);
  }
  return block == nullptr ? Allocation{}
                          : hand_out(block, size, request, completed);
}

BlockPool::Allocation BlockPool::allocate_after_release(
    const Request& request) {
  stats_.num_alloc_retries += 1;
  release_cached(request.context);
  const Allocation allocation = allocate(request);
  if (allocation.pointer == nullptr) {
    stats_.num_ooms += 1;
  }
  return allocation;
}

BlockPool::Allocation BlockPool::hand_out(
    Block* block,
    size_t size,
    const Request& request,
    uint64_t completed) {
  split(block, size);
  block->allocated = true;
  block->requested = request.size;
  block->by_kernel = request.user == User::kKernel;
  block->born = completed;
  block->context = request.context;
  active_[block->pointer] = block;
  count(block->small, [&](size_t kind) {
    stats_.allocation[kind].increase(1);
    stats_.allocated_bytes[kind].increase(block->size);
    stats_.active[kind].increase(1);
    stats_.active_bytes[kind].increase(block->size);
    stats_.requested_bytes[kind].increase(block->requested);
  });
  if (is_oversize(block->size)) {
    stats_.oversize_allocations.increase(1);
  }
  trace(TraceEntry::ALLOC, *block, block->requested, block->context);
  return {block->pointer, block->size};
}

size_t BlockPool::free(void* pointer, const StackContext& context) {
  const auto found = active_.find(pointer);
  if (found == active_.end() || !found->second->allocated) {
    return 0;
  }
  Block* block = found->second;
  block->allocated = false;
  const size_t size = block->size;
  count(block->small, [&](size_t kind) {
    stats_.allocation[kind].decrease(1);
    stats_.allocated_bytes[kind].decrease(size);
  });
  if (is_oversize(size)) {
    stats_.oversize_allocations.decrease(1);
  }
  trace(
      TraceEntry::FREE_REQUESTED,
      *block,
      block->requested,
      context ? context : block->context);
  const Progress progress = progress_of(block->stream);
  // What a kernel freed that it had allocated itself, nobody else has used.
  const bool own = block->by_kernel && block->born == progress.completed;
  block->ticket =
      own || progress.completed == progress.enqueued ? 0 : progress.enqueued;
  if (C10_LIKELY(block->used_by.empty())) {
    reclaim(block, context);
    return size;
  }
  block->events = block->used_by.size();
  for (orStream_t stream : block->used_by) {
    waiting_[stream].emplace_back(StreamEvent(stream), block);
  }
  block->used_by.clear();
  return size;
}

void BlockPool::record_use(const void* pointer, orStream_t stream) {
  const auto found = active_.find(pointer);
  if (found == active_.end() || !found->second->allocated ||
      found->second->stream == stream) {
    return;
  }
  auto& streams = found->second->used_by;
  if (std::find(streams.begin(), streams.end(), stream) == streams.end()) {
    streams.push_back(stream);
  }
}

std::optional<BlockInfo> BlockPool::find(const void* pointer) const {
  const auto found = active_.find(pointer);
  if (found == active_.end() || !found->second->allocated) {
    return std::nullopt;
  }
  const Block& block = *found->second;
  return BlockInfo{
      block.pointer,
      block.size,
      block.segment,
      block.stream,
      {block.used_by.begin(), block.used_by.end()}};
}

/// Reclaims the freed blocks that other streams no longer use.
void BlockPool::reclaim_reached() {
  for (auto each = waiting_.begin(); each != waiting_.end();) {
    Waiting& blocks = each->second;
    while (!blocks.empty() && blocks.front().first.reached()) {
      Block* block = blocks.front().second;
      blocks.pop_front();
      block->events -= 1;
      if (block->events == 0) {
        reclaim(block, nullptr);
      }
    }
    each = blocks.empty() ? waiting_.erase(each) : std::next(each);
  }
}

/// Puts a freed block into the cache.
void BlockPool::reclaim(Block* block, const StackContext& context) {
  active_.erase(block->pointer);
  trace(
      TraceEntry::FREE_COMPLETED,
      *block,
      block->requested,
      context ? context : block->context);
  block->context.reset();
  const size_t size = block->size;
  count(block->small, [&](size_t kind) {
    stats_.active[kind].decrease(1);
    stats_.active_bytes[kind].decrease(size);
    stats_.requested_bytes[kind].decrease(block->requested);
  });
  block->requested = 0;
  const bool was_split = block->is_split();
  if (was_split) {
    count(block->small, [&](size_t kind) {
      stats_.inactive_split[kind].increase(1);
      stats_.inactive_split_bytes[kind].increase(size);
    });
  }
  merge(block, block->previous);
  merge(block, block->next);
  if (was_split && !block->is_split()) { // a whole segment again
    count(block->small, [&](size_t kind) {
      stats_.inactive_split[kind].decrease(1);
      stats_.inactive_split_bytes[kind].decrease(block->size);
    });
  }
  block->age = turn_;
  insert(cached(block->small), block);
}

BlockPool::Block* BlockPool::make_block() {
  if (spare_.empty()) {
    return new Block{};
  }
  Block* block = spare_.back();
  spare_.pop_back();
  return block;
}

void BlockPool::recycle(Block* block) {
  *block = Block{};
  spare_.push_back(block);
}

void BlockPool::insert(Blocks& blocks, Block* block) {
  blocks.insert(
      std::lower_bound(blocks.begin(), blocks.end(), block, ByStreamAndSize{}),
      block);
}

void BlockPool::erase(Blocks& blocks, Block* block) {
  blocks.erase(
      std::lower_bound(blocks.begin(), blocks.end(), block, ByStreamAndSize{}));
}

BlockPool::Blocks::iterator
BlockPool::find_fit(Blocks& blocks, orStream_t stream, size_t size) {
  return std::lower_bound(
      blocks.begin(),
      blocks.end(),
      std::pair(stream, size),
      [](const Block* block, const auto& wanted) {
        return block->stream != wanted.first
            ? std::less<>()(block->stream, wanted.first)
            : block->size < wanted.second;
      });
}

BlockPool::Block* BlockPool::take_cached(
    size_t size,
    bool small,
    const Request& request,
    uint64_t completed) {
  if (C10_UNLIKELY(garbage_is_collected(allowed_))) {
    turn_ += 1;
  }
  Blocks& blocks = cached(small);
  auto fit = find_fit(blocks, request.stream, size);
  if (request.user != User::kWork) {
    while (fit != blocks.end() && (*fit)->ticket > completed) {
      ++fit;
    }
  }
  if (fit == blocks.end() || (*fit)->stream != request.stream) {
    return nullptr;
  }
  Block* block = *fit;
  // Blocks that may not be split are kept for requests of about their size.
  if (is_oversize(size)
          ? block->size >= size + Config::max_non_split_rounding_size()
          : is_oversize(block->size)) {
    return nullptr;
  }
  blocks.erase(fit);
  if (block->is_split()) {
    count(small, [&](size_t kind) {
      stats_.inactive_split[kind].decrease(1);
      stats_.inactive_split_bytes[kind].decrease(block->size);
    });
  }
  return block;
}

BlockPool::Block*
BlockPool::make_segment(size_t size, bool small, const Request& request) {
  const auto reserved = static_cast<size_t>(stats_.reserved_bytes[0].current);
  if (allowed_ && reserved + size > *allowed_) {
    return nullptr;
  }
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
  if (is_oversize(size)) {
    stats_.oversize_segments.increase(1);
  }
  Block* block = make_block();
  block->pointer = static_cast<std::byte*>(pointer);
  block->size = size;
  block->stream = request.stream;
  block->segment = ++segments_;
  block->small = small;
  block->segment_context = request.context;
  trace(TraceEntry::SEGMENT_ALLOC, *block, size, request.context);
  return block;
}

void BlockPool::split(Block* block, size_t size) {
  const size_t rest = block->size - size;
  if (!should_split(size, rest, block->small)) {
    return;
  }
  Block* remaining = make_block();
  remaining->pointer = block->pointer + size;
  remaining->size = rest;
  remaining->stream = block->stream;
  remaining->segment = block->segment;
  remaining->small = block->small;
  remaining->ticket = block->ticket;
  remaining->age = turn_;
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

/// Absorbs a cached neighbour into a block that is about to be cached.
void BlockPool::merge(Block* block, Block* neighbour) {
  if (neighbour == nullptr || neighbour->allocated || neighbour->events > 0) {
    return;
  }
  erase(cached(block->small), neighbour);
  if (block->previous == neighbour) {
    block->pointer = neighbour->pointer;
    block->segment_context = std::move(neighbour->segment_context);
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
  block->ticket = std::max(block->ticket, neighbour->ticket);
  recycle(neighbour);
  count(block->small, [&](size_t kind) { // two free parts became one
    stats_.inactive_split[kind].decrease(1);
  });
}

std::set<orStream_t> BlockPool::busy_streams() {
  std::set<orStream_t> streams;
  for (const auto& each : waiting_) {
    streams.insert(each.first);
    for (const auto& block : each.second) {
      streams.insert(block.second->stream);
    }
  }
  for (const Blocks* blocks : {&small_, &large_}) {
    for (const Block* block : *blocks) {
      if (block->ticket > 0 && !block->is_split()) {
        streams.insert(block->stream);
      }
    }
  }
  stats_.num_sync_all_streams += 1;
  return streams;
}

void BlockPool::release_cached(const StackContext& context) {
  reclaim_reached();
  for (Blocks* blocks : {&large_, &small_}) {
    for (size_t index = 0; index < blocks->size();) {
      if (!release((*blocks)[index], context)) {
        ++index;
      }
    }
  }
}

/// Gives a cached segment back; false if a part is in use, or work is not
/// completed.
bool BlockPool::release(Block* block, const StackContext& context) {
  if (block->is_split() ||
      block->ticket > progress_of(block->stream).completed) {
    return false;
  }
  trace(
      TraceEntry::SEGMENT_FREE,
      *block,
      block->size,
      context ? context : block->segment_context);
  // Nothing uses it, and waiting here could be waiting for the kernel that
  // allocates.
  OPENREG_CHECK(orFreeUnused(block->pointer));
  stats_.num_device_free += 1;
  count(block->small, [&](size_t kind) {
    stats_.segment[kind].decrease(1);
    stats_.reserved_bytes[kind].decrease(block->size);
  });
  if (is_oversize(block->size)) {
    stats_.oversize_segments.decrease(1);
  }
  erase(cached(block->small), block);
  recycle(block);
  return true;
}

/// Releases segments that may not be split, of this stream, until there is room
/// for the request.
bool BlockPool::release_oversize(
    size_t size,
    bool small,
    const Request& request) {
  const size_t max_split = Config::max_split_size();
  if (max_split == std::numeric_limits<size_t>::max()) {
    return false;
  }
  const size_t wanted = std::max(size, max_split);
  Blocks& blocks = cached(small);
  const auto fit = find_fit(blocks, request.stream, wanted);
  if (fit != blocks.end() && (*fit)->stream == request.stream) {
    return release(*fit, request.context);
  }
  size_t released = 0; // no single one is large enough: the largest first
  auto place = static_cast<size_t>(fit - blocks.begin());
  while (released < wanted && place > 0) {
    Block* block = blocks[--place];
    if (block->stream != request.stream || block->size < max_split) {
      break;
    }
    const size_t bytes = block->size;
    released += release(block, request.context) ? bytes : 0;
  }
  return released >= wanted;
}

/// Releases the large segments that were reused the longest ago, until what is
/// reserved is below the threshold.
void BlockPool::collect_garbage(const StackContext& context) {
  const auto limit = static_cast<int64_t>(
      Config::garbage_collection_threshold() * static_cast<double>(*allowed_));
  const auto above = [&] { return stats_.reserved_bytes[0].current > limit; };
  bool released = true;
  while (above() && released) {
    uint64_t total = 0;
    uint64_t segments = 0;
    for (const Block* block : large_) {
      if (!block->is_split()) {
        total += turn_ - block->age;
        segments += 1;
      }
    }
    released = false;
    // All of at least the mean age, so that the next collection is not soon.
    for (size_t index = 0; index < large_.size();) {
      Block* block = large_[index];
      if (!block->is_split() && (turn_ - block->age) * segments >= total &&
          release(block, context)) {
        released = true;
      } else {
        ++index;
      }
    }
  }
}

void BlockPool::note_out_of_memory(const Request& request, size_t free) {
  trace_.add(
      TraceEntry::OOM,
      device_,
      free,
      request.size,
      request.stream,
      request.context);
}

std::vector<BlockPool::SegmentInfo> BlockPool::snapshot() {
  std::vector<const Block*> first;
  const auto add = [&](const Block* block) {
    if (block->previous == nullptr) {
      first.push_back(block);
    }
  };
  for (const auto& each : active_) {
    add(each.second);
  }
  for (const Blocks* blocks : {&small_, &large_}) {
    std::for_each(blocks->begin(), blocks->end(), add);
  }
  std::sort(
      first.begin(), first.end(), [](const auto* left, const auto* right) {
        return left->pointer < right->pointer;
      });
  std::vector<SegmentInfo> segments;
  size_t active = 0;
  for (const Block* head : first) {
    SegmentInfo& segment = segments.emplace_back();
    segment.device = device_;
    segment.address = reinterpret_cast<size_t>(head->pointer);
    segment.stream = head->stream;
    segment.is_large = !head->small;
    segment.context_when_allocated = head->segment_context;
    for (const Block* block = head; block != nullptr; block = block->next) {
      auto& info = segment.blocks.emplace_back();
      info.size = block->size;
      info.requested_size = block->requested;
      info.allocated = block->allocated;
      info.active = block->allocated || block->events > 0;
      info.context_when_allocated = block->context;
      segment.total_size += info.size;
      segment.allocated_size += info.allocated ? info.size : 0;
      segment.active_size += info.active ? info.size : 0;
      segment.requested_size += info.active ? info.requested_size : 0;
    }
    active += segment.active_size;
  }
  trace_.add(TraceEntry::SNAPSHOT, device_, 0, active, nullptr, nullptr);
  return segments;
}

} // namespace openreg::aten
