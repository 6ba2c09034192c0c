// SPDX-License-Identifier: BSD-3-Clause
// The cached memory of one device: segments taken from the runtime, split into
// blocks. The choice of a block and its streams follow the documented rules of
// CUDA's caching allocator. Not thread safe.
//
// A freed block is reused by the stream that it was allocated for, whose later
// work follows its earlier work, so a free waits for nothing. Kernels of the
// CPU allocate too, at the time when they run and not when they are enqueued:
// they get only blocks whose work is completed, which the ticket tells.
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
    kWork,   // what is enqueued on the stream from now on
    kCaller, // whoever asks, at once: no work may still use the block
    kKernel  // the same for the kernel that the stream runs now
  };
  struct Request {
    size_t size; // bytes, not 0
    orStream_t stream;
    User user;
    c10::MempoolId_t pool; // of a graph, or {0, 0}
    StackContext context;
  };
  /// A block as its user knows it; null if the device has no room.
  struct Allocation {
    void* pointer = nullptr;
    size_t size = 0; // rounded
  };
  Allocation allocate(const Request& request);
  /// The same after all cached segments were released whose work is completed.
  Allocation allocate_after_release(const Request& request);

  /// The size in bytes of the block that was freed; 0 if `pointer` is none.
  size_t free(void* pointer, const StackContext& context);
  /// Keeps a block from being reused before the work that `stream` has when the
  /// block is freed. Does nothing if `pointer` is not the start of a block.
  void record_use(const void* pointer, orStream_t stream);

  /// The block in use that starts at `pointer`.
  std::optional<BlockInfo> find(const void* pointer) const;

  /// The streams whose work keeps memory from being released.
  std::set<orStream_t> busy_streams();
  /// Releases the cached segments whose work is completed.
  void release_cached(const StackContext& context);
  /// Forgets all memory, which the device has lost. The addresses of blocks in
  /// use are not given out again before these are freed.
  void abandon();

  // Counts of the graphs that use a pool: its blocks stay for them.
  void retain(const c10::MempoolId_t& pool) {
    retained_[pool] += 1;
  }
  /// After the work that `last` has, if that is not null: a replay.
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

 private:
  using Waiting = std::deque<std::pair<StreamEvent, Block*>>;

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
        context);
  }

  c10::DeviceIndex device_;
  FreeBlocks free_;
  // Not free: allocated, or freed and waiting for events.
  ska::flat_hash_map<const void*, Block*> active_;
  std::map<orStream_t, Waiting> waiting_; // for the events of each stream
  // Freed in a capture, and used by other streams: an event of a stream that is
  // captured orders the graph alone, so they get theirs afterwards.
  std::vector<Block*> deferred_;
  std::map<c10::MempoolId_t, int> retained_;
  // Of graphs that are gone: which pool, and the end of its last replay, which
  // gets its event when no stream is captured.
  struct Replayed {
    c10::MempoolId_t pool;
    orStream_t stream;
    std::optional<StreamEvent> end;
  };
  std::vector<Replayed> replayed_;
  std::map<const std::byte*, size_t> lost_; // blocks in use of lost memory
  std::vector<void*> held_; // memory at their addresses, until they are freed
  std::optional<size_t> allowed_; // bytes to reserve at most
  uint64_t turn_ = 0;             // counts requests, while garbage is collected
  uint64_t segments_ = 0;         // that were ever made
  BlockCounts stats_;
  MemoryTrace trace_;
};

} // namespace openreg::aten
