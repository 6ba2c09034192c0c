// SPDX-License-Identifier: BSD-3-Clause
// Blocks from request to release.
#include "memory/block_pool.h"

#include "device/device.h"
#include "device/error.h"
#include "memory/size_classes.h"
#include "stream/capture.h"

#include <c10/core/AllocatorConfig.h>

#include <algorithm>
#include <limits>

namespace openreg::aten {
namespace {

using Config = c10::CachingAllocator::AcceleratorAllocatorConfig;

struct Progress {
  uint64_t enqueued = 0;
  uint64_t completed = 0;
};

/// A stream that no longer exists has no pending work.
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

BlockPool::Allocation BlockPool::allocate(const Request& request) {
  if (request.size > kLargest) {
    return {};
  }
  reclaim_reached();
  const size_t size = block_size(request.size);
  const bool small = size <= kSmall;
  const uint64_t completed =
      request.user == User::kWork ? 0 : progress_of(request.stream).completed;
  Block* block = take_free(size, small, request, completed);
  if (block == nullptr) {
    if (C10_UNLIKELY(garbage_is_collected(allowed_))) {
      collect_garbage(request.context);
    }
    block = make_segment(segment_size(size), small, request);
  }
  if (block == nullptr && release_oversize(size, small, request)) {
    block = make_segment(segment_size(size), small, request);
  }
  return block == nullptr ? Allocation{}
                          : hand_out(block, size, request, completed);
}

BlockPool::Allocation BlockPool::allocate_after_release(
    const Request& request) {
  stats_.num_alloc_retries += 1;
  release_cached(request.context);
  Allocation allocation = allocate(request);
  if (allocation.pointer == nullptr) {
    allocation = allocate_elsewhere(request);
  }
  if (allocation.pointer == nullptr) {
    stats_.num_ooms += 1;
  }
  return allocation;
}

/// Serves a request of no pool with a free block of a pool that allows it.
BlockPool::Allocation BlockPool::allocate_elsewhere(const Request& request) {
  if (rules_.empty() || request.pool != c10::MempoolId_t() ||
      request.size > kLargest) {
    return {};
  }
  const size_t size = block_size(request.size);
  const uint64_t completed =
      request.user == User::kWork ? 0 : progress_of(request.stream).completed;
  Request other = request;
  for (const auto& [pool, rules] : rules_) {
    if (rules.serves_out_of_memory) {
      other.pool = pool;
      Block* block = take_free(size, size <= kSmall, other, completed);
      if (block != nullptr) {
        return hand_out(block, size, other, completed);
      }
    }
  }
  return {};
}

BlockPool::Allocation BlockPool::hand_out(
    Block* block,
    size_t size,
    const Request& request,
    uint64_t completed) {
  const size_t rest = block->size - size;
  if (should_split(size, rest, block->small) && !keeps_whole(block->pool)) {
    free_.split(block, size, turn_);
    stats_.add_part(block->small, rest);
  }
  block->allocated = true;
  block->requested = request.size;
  block->by_kernel = request.user == User::kKernel;
  block->born = completed;
  block->context = request.context;
  active_[block->pointer] = block;
  stats_.allocate(*block);
  trace(TraceEntry::ALLOC, *block, block->requested, block->context);
  return {block->pointer, block->size};
}

size_t BlockPool::free(void* pointer, const StackContext& context) {
  const auto found = active_.find(pointer);
  if (found == active_.end() || !found->second->allocated) {
    free_lost(pointer);
    return 0;
  }
  Block* block = found->second;
  block->allocated = false;
  const size_t size = block->size;
  stats_.free(*block);
  trace(
      TraceEntry::FREE_REQUESTED,
      *block,
      block->requested,
      context ? context : block->context);
  const Progress progress = progress_of(block->stream);
  // Memory that a kernel allocated and freed itself has no other users.
  const bool own = block->by_kernel && block->born == progress.completed;
  block->ticket =
      own || progress.completed == progress.enqueued ? 0 : progress.enqueued;
  if (C10_LIKELY(block->used_by.empty())) {
    reclaim(block, context);
    return size;
  }
  block->events = block->used_by.size();
  if (captures_underway()) {
    deferred_.push_back(block);
  } else {
    wait_for_users(block);
  }
  return size;
}

/// Makes a freed block wait for the work of the other streams that use it.
void BlockPool::wait_for_users(Block* block) {
  for (orStream_t stream : block->used_by) {
    waiting_[stream].emplace_back(StreamEvent(stream), block);
  }
  block->used_by.clear();
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

void BlockPool::release(const c10::MempoolId_t& pool, orStream_t last) {
  if (last == nullptr) {
    drop(pool);
    return;
  }
  // Results that outlive the graph are used where it was replayed.
  for (const auto& [pointer, block] : active_) {
    if (block->pool == pool) {
      record_use(pointer, last);
    }
  }
  replayed_.push_back({pool, last, std::nullopt});
  release_replayed();
}

/// Removes a graph from a pool.
void BlockPool::drop(const c10::MempoolId_t& pool) {
  const auto found = retained_.find(pool);
  if (found != retained_.end() && --found->second == 0) {
    retained_.erase(found);
    rules_.erase(pool);
  }
}

/// Removes graphs from their pools after the last replay has ended.
void BlockPool::release_replayed() {
  if (captures_underway()) {
    return;
  }
  std::erase_if(replayed_, [this](Replayed& each) {
    if (!each.end) {
      each.end.emplace(each.stream);
    }
    if (!each.end->reached()) {
      return false;
    }
    drop(each.pool);
    return true;
  });
}

/// Reclaims the freed blocks that other streams no longer use.
void BlockPool::reclaim_reached() {
  if (C10_UNLIKELY(!replayed_.empty())) {
    release_replayed();
  }
  if (C10_UNLIKELY(!deferred_.empty()) && !captures_underway()) {
    for (Block* block : std::exchange(deferred_, {})) {
      wait_for_users(block);
    }
  }
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

/// Adds a freed block to the cache.
void BlockPool::reclaim(Block* block, const StackContext& context) {
  active_.erase(block->pointer);
  trace(
      TraceEntry::FREE_COMPLETED,
      *block,
      block->requested,
      context ? context : block->context);
  block->context.reset();
  stats_.reclaim(*block);
  block->requested = 0;
  const bool was_split = block->is_split();
  if (was_split) {
    stats_.add_part(block->small, block->size);
  }
  block->age = turn_;
  const size_t merged = free_.add(block); // merging two free parts leaves one
  stats_.merge_parts(block->small, merged);
  if (was_split && !block->is_split()) { // a whole segment again
    stats_.remove_part(block->small, block->size);
  }
}

Block* BlockPool::take_free(
    size_t size,
    bool small,
    const Request& request,
    uint64_t completed) {
  if (C10_UNLIKELY(garbage_is_collected(allowed_))) {
    turn_ += 1;
  }
  Block* block = free_.take(
      small,
      {request.pool, request.stream},
      size,
      request.user == User::kWork ? FreeBlocks::kNotIdle : completed);
  if (block != nullptr && block->is_split()) {
    stats_.remove_part(small, block->size);
  }
  return block;
}

Block*
BlockPool::make_segment(size_t size, bool small, const Request& request) {
  const auto reserved = static_cast<size_t>(stats_.reserved_bytes[0].current);
  if (allowed_ && reserved + size > *allowed_) {
    return nullptr;
  }
  const CurrentDevice scope(device_);
  void* pointer = nullptr;
  for (;;) {
    const orError_t error = orMalloc(&pointer, size);
    if (error == orErrorMemoryAllocation) {
      return nullptr;
    }
    OPENREG_CHECK(error);
    if (C10_LIKELY(!overlaps_lost(static_cast<std::byte*>(pointer), size))) {
      break;
    }
    held_.push_back(pointer);
  }
  Block* block = free_.make();
  block->pointer = static_cast<std::byte*>(pointer);
  block->size = size;
  block->stream = request.stream;
  block->pool = request.pool;
  block->segment = ++segments_;
  block->small = small;
  block->segment_context = request.context;
  stats_.reserve(*block);
  trace(TraceEntry::SEGMENT_ALLOC, *block, size, request.context);
  return block;
}

std::set<orStream_t> BlockPool::busy_streams() {
  std::set<orStream_t> streams;
  for (const Replayed& each : replayed_) {
    streams.insert(each.stream);
  }
  for (const auto& each : waiting_) {
    streams.insert(each.first);
    for (const auto& block : each.second) {
      streams.insert(block.second->stream);
    }
  }
  for (const bool small : {true, false}) {
    for (const Block* block : free_.of_kind(small)) {
      if (block->ticket > 0 && !block->is_split()) {
        streams.insert(block->stream);
      }
    }
  }
  stats_.num_sync_all_streams += 1;
  return streams;
}

void BlockPool::release_cached(
    const StackContext& context,
    const c10::MempoolId_t& pool) {
  const bool all = pool == c10::MempoolId_t();
  reclaim_reached();
  for (const bool small : {false, true}) {
    const FreeBlocks::Set& blocks = free_.of_kind(small);
    for (size_t index = 0; index < blocks.size();) {
      const bool wanted = all || blocks[index]->pool == pool;
      if (!wanted || !release(blocks[index], context)) {
        ++index;
      }
    }
  }
}

/// Releases a cached segment. Returns false if a part is in use, or work is
/// pending.
bool BlockPool::release(Block* block, const StackContext& context) {
  if (block->is_split() || retained_.contains(block->pool) ||
      block->ticket > progress_of(block->stream).completed) {
    return false;
  }
  trace(
      TraceEntry::SEGMENT_FREE,
      *block,
      block->size,
      context ? context : block->segment_context);
  // No work uses the memory, and waiting here could deadlock with the kernel
  // that allocates.
  OPENREG_CHECK(orFreeUnused(block->pointer));
  stats_.release(*block);
  free_.drop(block);
  return true;
}

void BlockPool::abandon() {
  for (const auto& [pointer, block] : active_) {
    if (block->allocated) {
      lost_.emplace(block->pointer, block->size);
    }
    free_.recycle(block);
  }
  active_.clear();
  waiting_.clear();
  deferred_.clear();
  for (const Replayed& each : std::exchange(replayed_, {})) {
    drop(each.pool);
  }
  free_.drop_all();
  held_.clear(); // the device has lost them, too
  stats_ = {};
}

bool BlockPool::overlaps_lost(const std::byte* begin, size_t size) const {
  const auto behind = lost_.lower_bound(begin + size);
  if (behind == lost_.begin()) {
    return false;
  }
  const auto& [lost, lost_size] = *std::prev(behind);
  return lost + lost_size > begin;
}

void BlockPool::free_lost(void* pointer) {
  lost_.erase(static_cast<std::byte*>(pointer));
  if (lost_.empty()) {
    for (void* each : std::exchange(held_, {})) {
      OPENREG_CHECK(orFreeUnused(each));
    }
  }
}

/// Releases segments of this stream that must not be split, until the request
/// fits.
bool BlockPool::release_oversize(
    size_t size,
    bool small,
    const Request& request) {
  const size_t max_split = Config::max_split_size();
  if (max_split == std::numeric_limits<size_t>::max()) {
    return false;
  }
  const size_t wanted = std::max(size, max_split);
  const FreeBlocks::Set& blocks = free_.of_kind(small);
  const auto fits = [&request](const Block* block) {
    return block->stream == request.stream && block->pool == request.pool;
  };
  size_t place = free_.find_fit(small, {request.pool, request.stream}, wanted);
  if (place < blocks.size() && fits(blocks[place])) {
    return release(blocks[place], request.context);
  }
  size_t released = 0; // no single one is large enough: the largest first
  while (released < wanted && place > 0) {
    Block* block = blocks[--place];
    if (!fits(block) || block->size < max_split) {
      break;
    }
    const size_t bytes = block->size;
    released += release(block, request.context) ? bytes : 0;
  }
  return released >= wanted;
}

/// Releases the large segments that were not used for the longest time, until
/// the reserved memory is below the threshold.
void BlockPool::collect_garbage(const StackContext& context) {
  const auto limit = static_cast<int64_t>(
      Config::garbage_collection_threshold() * static_cast<double>(*allowed_));
  const auto above = [&] { return stats_.reserved_bytes[0].current > limit; };
  const FreeBlocks::Set& large = free_.of_kind(/*small=*/false);
  bool released = true;
  while (above() && released) {
    uint64_t total = 0;
    uint64_t segments = 0;
    for (const Block* block : large) {
      if (!block->is_split()) {
        total += turn_ - block->age;
        segments += 1;
      }
    }
    released = false;
    // Releases all segments of at least the mean age, to delay the next
    // collection.
    for (size_t index = 0; index < large.size();) {
      Block* block = large[index];
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
      request.pool,
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
  for (const bool small : {true, false}) {
    const FreeBlocks::Set& blocks = free_.of_kind(small);
    std::for_each(blocks.begin(), blocks.end(), add);
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
    segment.owner_private_pool_id = head->pool;
    segment.context_when_allocated = head->segment_context;
    for (const Block* block = head; block != nullptr; block = block->next) {
      auto& info = segment.blocks.emplace_back();
      info.size = block->size;
      info.requested_size = block->requested;
      info.allocated = block->allocated;
      info.active = !block->is_free();
      info.context_when_allocated = block->context;
      segment.total_size += info.size;
      segment.allocated_size += info.allocated ? info.size : 0;
      segment.active_size += info.active ? info.size : 0;
      segment.requested_size += info.active ? info.requested_size : 0;
    }
    active += segment.active_size;
  }
  trace_.add(TraceEntry::SNAPSHOT, device_, 0, active, nullptr, {}, nullptr);
  return segments;
}

PoolState BlockPool::state_of(const c10::MempoolId_t& pool) const {
  std::map<std::byte*, const Block*> first;
  const auto add = [&](const Block* block) {
    if (block->pool == pool) {
      while (block->previous != nullptr) {
        block = block->previous;
      }
      first.emplace(block->pointer, block);
    }
  };
  for (const auto& each : active_) {
    add(each.second);
  }
  for (const bool small : {true, false}) {
    const FreeBlocks::Set& blocks = free_.of_kind(small);
    std::for_each(blocks.begin(), blocks.end(), add);
  }
  PoolState state{pool, {}};
  for (const auto& [pointer, head] : first) {
    auto& segment = state.segments.emplace_back();
    segment.pointer = pointer;
    for (const Block* block = head; block != nullptr; block = block->next) {
      segment.parts.push_back(
          {block->size, block->requested, block->allocated});
    }
  }
  return state;
}

RestoredPool BlockPool::restore(
    const PoolState& state,
    const StackContext& context) {
  RestoredPool result;
  reclaim_reached();
  for (const auto& [pointer, block] : active_) {
    if (block->pool == state.pool) {
      TORCH_CHECK(
          block->allocated,
          "the state of a memory pool cannot be restored while other streams "
          "use a freed block of the pool");
      result.freed.push_back(block->pointer);
    }
  }
  for (void* pointer : result.freed) {
    active_.at(pointer)->used_by.clear();
    free(pointer, context);
  }
  for (const PoolState::Segment& segment : state.segments) {
    allocate_again(segment, result);
  }
  return result;
}

/// Divides a free segment into the parts that it had, and allocates them.
void BlockPool::allocate_again(
    const PoolState::Segment& segment,
    RestoredPool& result) {
  Block* block = nullptr;
  for (const bool small : {true, false}) {
    for (Block* each : free_.of_kind(small)) {
      block = each->pointer == segment.pointer ? each : block;
    }
  }
  TORCH_CHECK(
      block != nullptr && !block->is_split(),
      "the state of a memory pool cannot be restored, because a segment of it "
      "was released");
  free_.erase(block);
  for (const PoolState::Part& part : segment.parts) {
    if (block->size > part.size) {
      free_.split(block, part.size, turn_);
      free_.erase(block->next);
    }
    block->allocated = true;
    block->requested = part.requested;
    block->by_kernel = false;
    active_[block->pointer] = block;
    stats_.allocate(*block);
    trace(TraceEntry::ALLOC, *block, block->requested, block->context);
    block = block->next;
  }
  std::byte* pointer = segment.pointer;
  for (const PoolState::Part& part : segment.parts) {
    if (part.allocated) {
      result.allocated.push_back(pointer);
    } else {
      free(pointer, nullptr);
    }
    pointer += part.size;
  }
}

} // namespace openreg::aten
