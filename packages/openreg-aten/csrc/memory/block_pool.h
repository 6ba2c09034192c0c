// SPDX-License-Identifier: BSD-3-Clause
// The cached memory of one device: segments allocated by the runtime, and split
// into blocks. Blocks and streams are chosen by the documented rules of CUDA's
// caching allocator. Not thread safe.
//
// The stream that a block was allocated for reuses it after it is freed. Stream
// order makes this safe without waiting. CPU kernels also allocate blocks, when
// they run and not when they are enqueued. They get only blocks whose work is
// complete, as the ticket shows.
#pragma once

#include "memory/block.h"
#include "memory/free_blocks.h"
#include "memory/memory_history.h"
#include "stream/stream_event.h"

#include <openreg/openreg.h>

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/flat_hash_map.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace openreg::aten {

class BlockPool {
 public:
  using SegmentInfo = c10::CachingDeviceAllocator::SegmentInfo;

  explicit BlockPool(c10::DeviceIndex device) : device_(device) {}

  enum class User {
    kWork,   // work that will be enqueued on the stream
    kCaller, // the caller, immediately: no pending work may use the block
    kKernel  // the kernel that the stream runs now, immediately
  };
  struct Request {
    size_t size; // bytes, not 0
    orStream_t stream;
    User user;
    c10::MempoolId_t pool; // of a graph or the user, or {0, 0}
    StackContext context;
  };
  /// The user's view of a block; null if the device is out of memory.
  struct Allocation {
    void* pointer = nullptr;
    size_t size = 0; // rounded
  };
  Allocation allocate(const Request& request);
  /// Releases all cached segments whose work is complete, and allocates.
  Allocation allocate_after_release(const Request& request);

  /// Frees a block and returns its size in bytes, or 0 if `pointer` is not the
  /// start of a block.
  size_t free(void* pointer, const StackContext& context);
  /// Delays the reuse of a block until the work that `stream` has when the
  /// block is freed is complete. No effect if `pointer` is not the start of a
  /// block.
  void record_use(const void* pointer, orStream_t stream);

  /// Returns the block in use that starts at `pointer`.
  std::optional<BlockInfo> find(const void* pointer) const;

  /// Returns the streams whose pending work prevents the release of memory.
  std::set<orStream_t> busy_streams();
  /// Releases the cached segments of a pool whose work is complete. Pool {0, 0}
  /// stands for all pools without users.
  void release_cached(
      const StackContext& context,
      const c10::MempoolId_t& pool = {});
  /// Forgets all memory, which the device has lost. The addresses of blocks in
  /// use are not reused until these are freed.
  void abandon();

  // Counts the users of a pool, such as graphs. Its blocks are kept for them.
  void retain(const c10::MempoolId_t& pool) {
    retained_[pool] += 1;
  }
  int uses(const c10::MempoolId_t& pool) const {
    const auto found = retained_.find(pool);
    return found == retained_.end() ? 0 : found->second;
  }
  void set_rules(const c10::MempoolId_t& pool, const PoolRules& rules) {
    rules_[pool] = rules;
  }
  /// Takes effect after the current work of `last`, the stream of the last
  /// replay. `last` may be null.
  void release(const c10::MempoolId_t& pool, orStream_t last);

  void set_allowed(std::optional<size_t> bytes) {
    allowed_ = bytes;
  }
  std::optional<size_t> allowed() const {
    return allowed_;
  }
  BlockCounts& stats() {
    return stats_;
  }
  MemoryTrace& trace() {
    return trace_;
  }
  void note_out_of_memory(const Request& request, size_t free);
  std::vector<SegmentInfo> snapshot();

  PoolState state_of(const c10::MempoolId_t& pool) const;
  /// Frees all blocks of a pool, and allocates the blocks of a state again.
  RestoredPool restore(const PoolState& state, const StackContext& context);

 private:
  using Waiting = std::deque<std::pair<StreamEvent, Block*>>;

  /// Whether the segments of a pool are never split.
  bool keeps_whole(const c10::MempoolId_t& pool) const {
    if (C10_LIKELY(rules_.empty())) {
      return false;
    }
    const auto rules = rules_.find(pool);
    return rules != rules_.end() && rules->second.keeps_segments_whole;
  }
  Allocation hand_out(
      Block* block,
      size_t size,
      const Request& request,
      uint64_t completed);
  void reclaim(Block* block, const StackContext& context);
  void reclaim_reached();
  void release_replayed();
  void drop(const c10::MempoolId_t& pool);
  void wait_for_users(Block* block);
  Block* take_free(
      size_t size,
      bool small,
      const Request& request,
      uint64_t completed);
  Block* make_segment(size_t size, bool small, const Request& request);
  bool release_oversize(size_t size, bool small, const Request& request);
  Allocation allocate_elsewhere(const Request& request);
  void allocate_again(const PoolState::Segment& segment, RestoredPool& result);
  void collect_garbage(const StackContext& context);
  bool release(Block* block, const StackContext& context);
  bool overlaps_lost(const std::byte* begin, size_t size) const;
  void free_lost(void* pointer);
  void trace(
      TraceEntry::Action action,
      const Block& block,
      size_t size,
      const StackContext& context) {
    trace_.add(
        action,
        device_,
        reinterpret_cast<size_t>(block.pointer),
        size,
        block.stream,
        block.pool,
        context);
  }

  c10::DeviceIndex device_;
  FreeBlocks free_;
  // Blocks that are not free: allocated, or freed and waiting for events.
  ska::flat_hash_map<const void*, Block*> active_;
  std::map<orStream_t, Waiting> waiting_; // for the events of each stream
  // Blocks freed during a capture and used by other streams. An event on a
  // captured stream only orders the graph, so their events are recorded after
  // the capture.
  std::vector<Block*> deferred_;
  std::map<c10::MempoolId_t, int> retained_;
  std::map<c10::MempoolId_t, PoolRules> rules_; // of pools that have some
  // The pool of a destroyed graph, and the end of its last replay. The event is
  // recorded while no stream is captured.
  struct Replayed {
    c10::MempoolId_t pool;
    orStream_t stream;
    std::optional<StreamEvent> end;
  };
  std::vector<Replayed> replayed_;
  std::map<const std::byte*, size_t> lost_; // blocks in use of lost memory
  std::vector<void*> held_; // reserves the addresses of lost blocks in use
  std::optional<size_t> allowed_; // maximum bytes to reserve
  uint64_t turn_ = 0;     // counts requests while garbage collection is on
  uint64_t segments_ = 0; // total number of segments
  BlockCounts stats_;
  MemoryTrace trace_;
};

} // namespace openreg::aten
