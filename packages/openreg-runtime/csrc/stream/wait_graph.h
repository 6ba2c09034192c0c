// SPDX-License-Identifier: BSD-3-Clause
// Which stream waits for which: finds kernels that wait for each other.
//
// A kernel may wait for another stream. If that one's kernel waits for the
// first in turn, neither ever ends, which one of them is told instead.
#pragma once

#include <chrono>
#include <cstdint>

namespace openreg {

class Point;
class Stream;

/// What a command waits for.
struct AwaitedWork {
  const Stream* stream = nullptr; // null: nothing in this process
  std::uint64_t position = 0;     // so many commands of it must complete,
  const Point* point = nullptr;   // or, if there is one, this is to be reached
};

/// A wait of the command that this thread runs, as long as it lasts. A thread
/// that runs none is waited for by no stream, and is not noted.
class WaitEdge {
 public:
  /// How often a wait must check() for a cycle that another one closes.
  static constexpr std::chrono::milliseconds kCheckEvery{20};

  /// The command waits until so many of the stream's commands are completed.
  WaitEdge(const Stream& stream, std::uint64_t position);
  /// It waits for an event. The point must outlive the edge.
  explicit WaitEdge(const Point& point);
  /// It runs a command of the stream, as a part of itself.
  explicit WaitEdge(const Stream& stream);
  WaitEdge(const WaitEdge&) = delete;
  WaitEdge& operator=(const WaitEdge&) = delete;
  ~WaitEdge();

  /// Whether a command waits.
  explicit operator bool() const noexcept {
    return from_ != nullptr;
  }
  /// Throws orErrorNotPermitted if what the command waits for waits for the
  /// command; of commands that wait for each other, for one only.
  void check();

 private:
  void begin(const AwaitedWork& work);
  void end() noexcept;

  const Stream* from_ = nullptr;
  AwaitedWork outer_; // what `from_` waited for before
};

} // namespace openreg
