// SPDX-License-Identifier: BSD-3-Clause
// Positions, waits and copies of a pipe.
#include "backend/process/pipe.h"

#include "platform/wait.h"

#include <algorithm>
#include <cstring>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace openreg {
namespace {

// Large data is published in chunks of this size, so that both sides copy at
// the same time.
constexpr std::size_t kChunk = std::size_t{128} << 10;
// Larger writes bypass the caches: the reader would not find them there.
constexpr std::size_t kLarge = std::size_t{8} << 20;

/// Copies without reading the target first, as memcpy() does for data larger
/// than the caches. The pieces here are too small for memcpy() to do so.
void* copy_past_caches(void* to, const void* from, std::size_t size) {
#if defined(__SSE2__)
  constexpr std::size_t kLine = 64;
  auto* target = static_cast<std::byte*>(to);
  const auto* source = static_cast<const std::byte*>(from);
  const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(to) % kLine;
  const std::size_t head =
      std::min(size, misaligned > 0 ? kLine - misaligned : std::size_t{0});
  std::memcpy(target, source, head);
  std::size_t done = head;
  for (; size - done >= kLine; done += kLine) {
    const auto* line = reinterpret_cast<const __m128i*>(source + done);
    auto* into = reinterpret_cast<__m128i*>(target + done);
    const __m128i first = _mm_loadu_si128(line);
    const __m128i second = _mm_loadu_si128(line + 1);
    const __m128i third = _mm_loadu_si128(line + 2);
    const __m128i fourth = _mm_loadu_si128(line + 3);
    _mm_stream_si128(into, first);
    _mm_stream_si128(into + 1, second);
    _mm_stream_si128(into + 2, third);
    _mm_stream_si128(into + 3, fourth);
  }
  std::memcpy(target + done, source + done, size - done);
  _mm_sfence();
  return to;
#else
  return std::memcpy(to, from, size);
#endif
}

void wake(std::atomic<std::uint32_t>& word) noexcept {
  // Pairs with the fence of a sleeping peer: either the peer sees the published
  // position, or this thread sees that the peer sleeps.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (word.load(std::memory_order_relaxed) != 0) {
    word.store(0, std::memory_order_relaxed);
    platform::wake_one(word);
  }
}

template <typename Ready>
void wait_until(
    const Ready& ready,
    std::atomic<std::uint32_t>& sleeps,
    Patience& patience,
    Peer& peer) {
  peer.check();
  if (patience.spin(ready)) {
    return;
  }
  sleeps.store(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!ready()) {
    platform::wait_on(sleeps, 1, peer.check_every());
  }
  sleeps.store(0, std::memory_order_relaxed);
}

[[noreturn]] void throw_broken() {
  throw Broken("the shared memory of a lane is corrupted");
}

} // namespace

void Patience::relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

std::size_t PipeWriter::room() const {
  const std::uint64_t used =
      position_ - state_.read.load(std::memory_order_acquire);
  if (used > capacity_) {
    throw_broken();
  }
  return capacity_ - static_cast<std::size_t>(used);
}

std::size_t PipeWriter::write_some(const void* data, std::size_t size) {
  const std::size_t count = std::min(size, room());
  const std::size_t at = static_cast<std::size_t>(position_) % capacity_;
  const std::size_t first = std::min(count, capacity_ - at);
  const auto* from = static_cast<const std::byte*>(data);
  if (first > 0) {
    std::memcpy(bytes_ + at, from, first);
  }
  if (count > first) {
    std::memcpy(bytes_, from + first, count - first);
  }
  position_ += count;
  return count;
}

void PipeWriter::publish() noexcept {
  if (published_ != position_) {
    published_ = position_;
    state_.written.store(position_, std::memory_order_release);
    wake(state_.reader_sleeps);
  }
}

void PipeWriter::write(const void* data, std::size_t size, Peer& peer) {
  const auto* from = static_cast<const std::byte*>(data);
  while (size > 0) {
    const std::size_t count = write_some(from, std::min(size, kChunk));
    from += count;
    size -= count;
    if (size > 0) {
      publish();
    }
    if (count == 0) {
      wait_until(
          [this] { return room() > 0; }, state_.writer_sleeps, patience_, peer);
    }
  }
}

std::size_t PipeReader::available() const {
  const std::uint64_t count =
      state_.written.load(std::memory_order_acquire) - position_;
  if (count > capacity_) {
    throw_broken();
  }
  return static_cast<std::size_t>(count);
}

std::size_t
PipeReader::read_some(void* data, std::size_t size, CopyBytes copy) {
  const std::size_t count = std::min({size, available(), kChunk});
  if (count == 0) {
    return 0;
  }
  const std::size_t at = static_cast<std::size_t>(position_) % capacity_;
  const std::size_t first = std::min(count, capacity_ - at);
  auto* to = static_cast<std::byte*>(data);
  copy(to, bytes_ + at, first);
  if (count > first) {
    copy(to + first, bytes_, count - first);
  }
  position_ += count;
  state_.read.store(position_, std::memory_order_release);
  wake(state_.writer_sleeps);
  return count;
}

void PipeReader::read(void* data, std::size_t size, Peer& peer) {
  auto* to = static_cast<std::byte*>(data);
  const CopyBytes copy = size >= kLarge ? copy_past_caches : std::memcpy;
  while (size > 0) {
    const std::size_t count = read_some(to, size, copy);
    to += count;
    size -= count;
    if (count == 0) {
      wait_until(
          [this] { return available() > 0; },
          state_.reader_sleeps,
          patience_,
          peer);
    }
  }
}

} // namespace openreg
