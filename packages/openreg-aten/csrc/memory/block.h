// SPDX-License-Identifier: BSD-3-Clause
// A part of a segment of device memory: in use, freed and waited for, or free.
#pragma once

#include "memory/memory_history.h"

#include <openreg/openreg.h>

#include <c10/core/Allocator.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace openreg::aten {

/// A block that is in use, for callers outside of the allocator.
struct BlockInfo {
  void* pointer;
  size_t size;                // bytes, rounded
  uint64_t segment;           // no other segment of the device has the number
  void* stream;               // its own
  std::vector<void*> used_by; // other streams, by record_stream
};

struct Block {
  std::byte* pointer;
  size_t size;
  size_t requested;
  orStream_t stream;
  c10::MempoolId_t pool; // {0, 0}: of all
  uint64_t segment;      // its number
  bool small;
  bool allocated; // to a tensor
  size_t events;  // that a freed block waits for
  bool by_kernel; // allocated while a kernel ran, ...
  uint64_t born;  // ... when so many commands of the stream were completed
  // Once so many commands of its stream are completed, a free block is idle.
  uint64_t ticket;
  uint64_t age;    // the turn of garbage collection when it became free
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

} // namespace openreg::aten
