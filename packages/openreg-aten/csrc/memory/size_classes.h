// SPDX-License-Identifier: BSD-3-Clause
// The sizes of blocks and segments, by the documented rules of CUDA's caching
// allocator and PyTorch's allocator settings.
#pragma once

#include <c10/core/AllocatorConfig.h>
#include <c10/macros/Macros.h>

#include <cstddef>
#include <limits>

namespace openreg::aten {

// Sizes in bytes. Requests are rounded up to a multiple of kMinBlock. Requests
// up to kSmall come from segments of kSmallSegment, requests below
// kMinLargeAlloc from segments of 20 MiB (large_segment_size), and larger ones
// from a separate segment, rounded up to a multiple of kRoundLarge.
constexpr size_t kMinBlock = 512;
constexpr size_t kSmall = size_t{1} << 20;
constexpr size_t kSmallSegment = size_t{2} << 20;
constexpr size_t kMinLargeAlloc = size_t{10} << 20;
constexpr size_t kRoundLarge = size_t{2} << 20;

constexpr size_t kLargest = std::numeric_limits<size_t>::max() / 2; // request

/// Returns the size of the block for a request.
size_t block_size(size_t requested);
/// Returns the size of a new segment for a block.
size_t segment_size(size_t block);
/// Returns the size to request from the device if no free block fits.
size_t device_request(size_t requested);

/// Whether a block of this size is never split. The setting max_split_size_mb
/// is never less than 20 MiB.
inline bool is_oversize(size_t size) {
  return C10_UNLIKELY(
      size >= kMinLargeAlloc &&
      size >=
          c10::CachingAllocator::AcceleratorAllocatorConfig::max_split_size());
}

/// Whether the remainder `rest` of a free block becomes a separate block.
inline bool should_split(size_t size, size_t rest, bool small) {
  return small ? rest >= kMinBlock : !is_oversize(size) && rest > kSmall;
}

/// Whether a free block that is large enough may be used: blocks that must not
/// be split are kept for requests of a similar size.
bool may_serve(size_t free, size_t size);

} // namespace openreg::aten
