// SPDX-License-Identifier: BSD-3-Clause
// A pipe of bytes in memory that two processes share.
//
// Each side keeps its own position to itself and only publishes it, so what the
// other side writes into the memory can at worst break the pipe: it is checked
// before it is used, and bytes are copied out before anyone looks at them.
#pragma once

#include "base/error.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

namespace openreg {

/// What both sides see of a pipe. The bytes follow in memory of their own.
struct PipeState {
  alignas(64) std::atomic<std::uint64_t> written;
  alignas(64) std::atomic<std::uint64_t> read;
  alignas(64) std::atomic<std::uint32_t> reader_sleeps;
  alignas(64) std::atomic<std::uint32_t> writer_sleeps;
};

/// A peer, as one who waits for it sees it. check() throws once it is gone; it
/// is called before each wait, which takes this long at most.
class Peer {
 public:
  virtual void check() = 0;
  virtual std::chrono::nanoseconds check_every() const noexcept {
    return std::chrono::milliseconds(20);
  }

 protected:
  ~Peer() = default;
};

/// Spins while that pays: after waits that were short, for a time that is less
/// than what it costs to sleep and be woken.
class Patience {
 public:
  /// Returns once `ready()`, or false if the caller should sleep.
  template <typename Ready>
  bool spin(const Ready& ready) {
    if (ready()) {
      return true;
    }
    if (spins_ == 0 && ++waits_ % kTryEvery != 0) {
      return false;
    }
    const auto end = std::chrono::steady_clock::now() + kLimit;
    do {
      for (int i = 0; i < 32; ++i) {
        if (ready()) {
          spins_ = kMost;
          return true;
        }
        relax();
      }
    } while (std::chrono::steady_clock::now() < end);
    spins_ = spins_ > 0 ? spins_ - 1 : 0;
    return false;
  }

 private:
  static void relax() noexcept;

  static constexpr std::chrono::microseconds kLimit{15};
  static constexpr int kMost = 4; // in vain, one after the other
  static constexpr unsigned kTryEvery = 16;
  int spins_ = kMost;
  unsigned waits_ = 0;
};

/// Thrown where what the other side wrote makes no sense.
class Broken : public Failure {
 public:
  explicit Broken(std::string reason)
      : Failure(orErrorDeviceLost, std::move(reason)) {}
};

class PipeWriter {
 public:
  PipeWriter(PipeState& state, std::byte* bytes, std::size_t capacity) noexcept
      : state_(state), bytes_(bytes), capacity_(capacity) {}

  /// How many bytes can be written now. Throws Broken.
  std::size_t room() const;
  /// Writes as much as there is room for; returns how much.
  std::size_t write_some(const void* data, std::size_t size);
  /// Lets the reader see what was written.
  void publish() noexcept;
  /// How many bytes were written so far.
  std::uint64_t position() const noexcept {
    return position_;
  }
  /// Writes all of it. The reader sees the last of it with publish().
  void write(const void* data, std::size_t size, Peer& peer);

 private:
  PipeState& state_;
  std::byte* const bytes_;
  const std::size_t capacity_;
  std::uint64_t position_ = 0;
  std::uint64_t published_ = 0;
  Patience patience_;
};

class PipeReader {
 public:
  PipeReader(
      PipeState& state,
      const std::byte* bytes,
      std::size_t capacity) noexcept
      : state_(state), bytes_(bytes), capacity_(capacity) {}

  /// How many bytes can be read now. Throws Broken.
  std::size_t available() const;
  /// Reads as much as there is; returns how much.
  std::size_t read_some(void* data, std::size_t size) {
    return read_some(data, size, std::memcpy);
  }
  /// How many bytes were read so far.
  std::uint64_t position() const noexcept {
    return position_;
  }

  /// Reads so many bytes.
  void read(void* data, std::size_t size, Peer& peer);

 private:
  using CopyBytes = void* (*)(void* to, const void* from, std::size_t size);
  std::size_t read_some(void* data, std::size_t size, CopyBytes copy);

  PipeState& state_;
  const std::byte* const bytes_;
  const std::size_t capacity_;
  std::uint64_t position_ = 0;
  Patience patience_;
};

} // namespace openreg
