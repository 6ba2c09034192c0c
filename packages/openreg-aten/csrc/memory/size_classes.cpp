// SPDX-License-Identifier: BSD-3-Clause
// Rounds sizes by the settings of the environment and the program.
#include "memory/size_classes.h"

#include <bit>

namespace openreg::aten {
namespace {

using Config = c10::CachingAllocator::AcceleratorAllocatorConfig;

size_t round_up(size_t size, size_t unit) {
  return (size + unit - 1) / unit * unit;
}

} // namespace

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

size_t segment_size(size_t block) {
  if (block <= kSmall) {
    return kSmallSegment;
  }
  return block < kMinLargeAlloc ? Config::large_segment_size()
                                : round_up(block, kRoundLarge);
}

size_t device_request(size_t requested) {
  return requested > kLargest ? requested : segment_size(block_size(requested));
}

bool may_serve(size_t free, size_t size) {
  return is_oversize(size) ? free < size + Config::max_non_split_rounding_size()
                           : !is_oversize(free);
}

} // namespace openreg::aten
