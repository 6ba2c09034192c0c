// SPDX-License-Identifier: BSD-3-Clause
// A block, which is a part of a segment of device memory, and the statistics of
// blocks. A block is in use, freed but still used by pending work, or free.
#pragma once

#include "memory/memory_history.h"
#include "memory/size_classes.h"

#include <openreg/openreg.h>

#include <c10/core/CachingDeviceAllocator.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace openreg::aten {

/// Describes a block in use, for callers outside the allocator.
struct BlockInfo {
  void* pointer;
  size_t size;                // bytes, rounded
  uint64_t segment;           // unique per device
  void* stream;               // the stream it was allocated for
  std::vector<void*> used_by; // other streams, by record_stream
};

/// The rules of a pool that the user created.
struct PoolRules {
  bool keeps_segments_whole = false;
  bool serves_out_of_memory = false; // requests of no pool, as a last resort
};

/// The blocks of a pool at some time.
struct PoolState {
  struct Part {
    size_t size;
    size_t requested;
    bool allocated;
  };
  struct Segment {
    std::byte* pointer;
    std::vector<Part> parts;
  };
  c10::MempoolId_t pool;
  std::vector<Segment> segments;

  /// Returns the blocks that were in use.
  std::vector<void*> live() const {
    std::vector<void*> pointers;
    for (const Segment& segment : segments) {
      std::byte* pointer = segment.pointer;
      for (const Part& part : segment.parts) {
        if (part.allocated) {
          pointers.push_back(pointer);
        }
        pointer += part.size;
      }
    }
    return pointers;
  }
};

/// The blocks that the restoration of a state has freed and allocated.
struct RestoredPool {
  std::vector<void*> freed;
  std::vector<void*> allocated;
};

struct Block {
  std::byte* pointer;
  size_t size;
  size_t requested;
  orStream_t stream;
  c10::MempoolId_t pool; // {0, 0}: the common pool
  uint64_t segment;      // segment number
  bool small;
  bool allocated; // to a tensor
  size_t events;  // number of events that a freed block waits for
  bool by_kernel; // allocated while a kernel ran, ...
  uint64_t born;  // ... after this number of completed stream commands
  // A free block is idle after this number of completed commands of its stream.
  uint64_t ticket;
  uint64_t age;    // garbage collection turn when it became free
  Block* previous; // neighbours within the segment
  Block* next;
  std::vector<orStream_t> used_by; // besides its own stream
  StackContext context;
  StackContext segment_context; // of the first block of a segment

  bool is_split() const {
    return previous != nullptr || next != nullptr;
  }
  bool is_free() const {
    return !allocated && events == 0;
  }
};

/// The statistics of torch.accelerator.memory_stats(), counted for all blocks,
/// and separately for small and large blocks.
class BlockCounts : public c10::CachingDeviceAllocator::DeviceStats {
 public:
  // Counts a block as allocated, as freed by its user, and as reclaimed after
  // all streams have used it.
  void allocate(const Block& block) {
    count(block.small, [&](size_t kind) {
      allocation[kind].increase(1);
      allocated_bytes[kind].increase(block.size);
      active[kind].increase(1);
      active_bytes[kind].increase(block.size);
      requested_bytes[kind].increase(block.requested);
    });
    if (is_oversize(block.size)) {
      oversize_allocations.increase(1);
    }
  }
  void free(const Block& block) {
    count(block.small, [&](size_t kind) {
      allocation[kind].decrease(1);
      allocated_bytes[kind].decrease(block.size);
    });
    if (is_oversize(block.size)) {
      oversize_allocations.decrease(1);
    }
  }
  void reclaim(const Block& block) {
    count(block.small, [&](size_t kind) {
      active[kind].decrease(1);
      active_bytes[kind].decrease(block.size);
      requested_bytes[kind].decrease(block.requested);
    });
  }

  // Counts a whole segment that the runtime allocated or freed.
  void reserve(const Block& block) {
    num_device_alloc += 1;
    count(block.small, [&](size_t kind) {
      segment[kind].increase(1);
      reserved_bytes[kind].increase(block.size);
    });
    if (is_oversize(block.size)) {
      oversize_segments.increase(1);
    }
  }
  void release(const Block& block) {
    num_device_free += 1;
    count(block.small, [&](size_t kind) {
      segment[kind].decrease(1);
      reserved_bytes[kind].decrease(block.size);
    });
    if (is_oversize(block.size)) {
      oversize_segments.decrease(1);
    }
  }

  // Counts `parts` free parts of split segments, with `bytes` bytes in total.
  void add_part(bool small, size_t bytes) {
    count(small, [&](size_t kind) {
      inactive_split[kind].increase(1);
      inactive_split_bytes[kind].increase(bytes);
    });
  }
  void remove_part(bool small, size_t bytes) {
    count(small, [&](size_t kind) {
      inactive_split[kind].decrease(1);
      inactive_split_bytes[kind].decrease(bytes);
    });
  }
  void merge_parts(bool small, size_t parts) {
    count(small, [&](size_t kind) { inactive_split[kind].decrease(parts); });
  }

 private:
  template <typename Change>
  static void count(bool small, const Change& change) {
    using c10::CachingAllocator::StatType;
    change(static_cast<size_t>(StatType::AGGREGATE));
    change(
        static_cast<size_t>(
            small ? StatType::SMALL_POOL : StatType::LARGE_POOL));
  }
};

} // namespace openreg::aten
