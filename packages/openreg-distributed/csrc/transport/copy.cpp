// SPDX-License-Identifier: BSD-3-Clause
// Non-temporal stores, if the compiler supports them.
#include "transport/copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace openreg::distributed {
namespace {

// More than a core's share of the last-level cache on most machines.
constexpr size_t kLarge = size_t{16} << 20;

#if defined(__SSE2__)
/// Copies memory that does not overlap.
void stream(std::byte* to, const std::byte* from, size_t size) {
  constexpr size_t kLine = 64;
  const size_t misaligned = reinterpret_cast<uintptr_t>(to) % kLine;
  const size_t head = std::min(size, (kLine - misaligned) % kLine);
  std::memcpy(to, from, head);
  size_t done = head;
  for (; done + kLine <= size; done += kLine) {
    const auto* source = reinterpret_cast<const __m128i*>(from + done);
    auto* target = reinterpret_cast<__m128i*>(to + done);
    // All loads come before the stores, so that whole cache lines are written.
    const __m128i first = _mm_loadu_si128(source);
    const __m128i second = _mm_loadu_si128(source + 1);
    const __m128i third = _mm_loadu_si128(source + 2);
    const __m128i fourth = _mm_loadu_si128(source + 3);
    _mm_stream_si128(target, first);
    _mm_stream_si128(target + 1, second);
    _mm_stream_si128(target + 2, third);
    _mm_stream_si128(target + 3, fourth);
  }
  _mm_sfence(); // makes the stores visible before a later signal
  std::memcpy(to + done, from + done, size - done);
}
#else
void stream(std::byte* to, const std::byte* from, size_t size) {
  std::memcpy(to, from, size);
}
#endif

} // namespace

void copy_bytes(std::byte* to, const std::byte* from, size_t size) {
  if (size > 0 && to != from) {
    std::memmove(to, from, size);
  }
}

void store_bytes(
    std::byte* to,
    const std::byte* from,
    size_t size,
    size_t total) {
  const bool overlaps = to < from + size && from < to + size;
  if (size == 0 || total < kLarge || overlaps) {
    copy_bytes(to, from, size);
  } else {
    stream(to, from, size);
  }
}

} // namespace openreg::distributed
