// SPDX-License-Identifier: BSD-3-Clause
// A pipe of bytes in memory that two processes share.
//
// Each side keeps its own position privately and only publishes it. The other
// side's position is checked before use, and bytes are copied out before they
// are read, so a faulty peer can at worst break the pipe.
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

/// The shared state of a pipe. The bytes are in separate memory.
struct PipeState {
  alignas(64) std::atomic<std::uint64_t> written;
  alignas(64) std::atomic<std::uint64_t> read;
  alignas(64) std::atomic<std::uint32_t> reader_sleeps;
  alignas(64) std::atomic<std::uint32_t> writer_sleeps;
};

/// The other end of a pipe. check() throws once it has ended. A wait calls
/// check() at least once per check_every().
class Peer {
 public:
  virtual void check() = 0;
  virtual std::chrono::nanoseconds check_every() const noexcept {
    return std::chrono::milliseconds(20);
  }

 protected:
  ~Peer() = default;
};

/// Spins after short waits, for less time than sleeping and waking would take.
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

/// Thrown when the other side has written invalid data.
class Broken : public Failure {
 public:
  explicit Broken(std::string reason)
      : Failure(orErrorDeviceLost, std::move(reason)) {}
};

class PipeWriter {
 public:
  PipeWriter(PipeState& state, std::byte* bytes, std::size_t capacity) noexcept
      : state_(state), bytes_(bytes), capacity_(capacity) {}

  /// The number of bytes that can be written now. Throws Broken.
  std::size_t room() const;
  /// Writes as many bytes as fit; returns their number.
  std::size_t write_some(const void* data, std::size_t size);
  /// Makes the written bytes visible to the reader.
  void publish() noexcept;
  /// The number of bytes written so far.
  std::uint64_t position() const noexcept {
    return position_;
  }
  /// Writes all bytes. publish() makes the last of them visible.
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

  /// The number of bytes that can be read now. Throws Broken.
  std::size_t available() const;
  /// Reads the available bytes; returns their number.
  std::size_t read_some(void* data, std::size_t size) {
    return read_some(data, size, std::memcpy);
  }
  /// The number of bytes read so far.
  std::uint64_t position() const noexcept {
    return position_;
  }

  /// Reads `size` bytes.
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
