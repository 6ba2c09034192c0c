// SPDX-License-Identifier: BSD-3-Clause
// The sizes of blocks and segments, by the documented rules of CUDA's caching
// allocator and PyTorch's settings of allocators.
#pragma once

#include <c10/core/AllocatorConfig.h>
#include <c10/macros/Macros.h>

#include <cstddef>
#include <limits>

namespace openreg::aten {

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

/// The size of the block for a request.
size_t block_size(size_t requested);
/// The size of a new segment for a block.
size_t segment_size(size_t block);
/// What the device is asked for if no free block fits a request.
size_t device_request(size_t requested);

/// Whether a block of this size is never split. The setting that decides it is
/// never less than 20 MiB.
inline bool is_oversize(size_t size) {
  return C10_UNLIKELY(
      size >= kMinLargeAlloc &&
      size >=
          c10::CachingAllocator::AcceleratorAllocatorConfig::max_split_size());
}

/// Whether what is left of a free block, `rest`, becomes a block of its own.
inline bool should_split(size_t size, size_t rest, bool small) {
  return small ? rest >= kMinBlock : !is_oversize(size) && rest > kSmall;
}

/// Whether a free block that is large enough may serve: those that may not be
/// split are kept for requests of about their size.
bool may_serve(size_t free, size_t size);

} // namespace openreg::aten
