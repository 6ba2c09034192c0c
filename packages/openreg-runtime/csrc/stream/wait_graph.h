// SPDX-License-Identifier: BSD-3-Clause
// The wait graph of streams, which detects kernels that wait for each other.
//
// A kernel may wait for another stream. If a kernel of that stream waits for
// the first one, neither would ever end. One of the two waits then throws.
#pragma once

#include <chrono>
#include <cstdint>

namespace openreg {

class Point;
class Stream;

/// The work that a command waits for.
struct AwaitedWork {
  const Stream* stream = nullptr; // null: not in this process
  std::uint64_t position = 0;     // its first commands must complete,
  const Point* point = nullptr;   // or, unless null, this point must be reached
};

/// A wait of the command that this thread runs. Waits of threads that run no
/// command are not tracked, because no stream waits for them.
class WaitEdge {
 public:
  /// The interval at which a wait must call check() for a new cycle.
  static constexpr std::chrono::milliseconds kCheckEvery{20};

  /// The command waits until the first `position` commands of the stream have
  /// completed.
  WaitEdge(const Stream& stream, std::uint64_t position);
  /// The command waits for an event. The point must outlive the edge.
  explicit WaitEdge(const Point& point);
  /// The command runs a command of the stream as its part.
  explicit WaitEdge(const Stream& stream);
  WaitEdge(const WaitEdge&) = delete;
  WaitEdge& operator=(const WaitEdge&) = delete;
  ~WaitEdge();

  /// Whether a command waits.
  explicit operator bool() const noexcept {
    return from_ != nullptr;
  }
  /// Throws orErrorNotPermitted if the command is part of a cycle. It throws
  /// for only one command of a cycle.
  void check();

 private:
  void begin(const AwaitedWork& work);
  void end() noexcept;

  const Stream* from_ = nullptr;
  AwaitedWork outer_; // what `from_` waited for before
};

} // namespace openreg
