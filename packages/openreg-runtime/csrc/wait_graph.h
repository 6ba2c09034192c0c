// SPDX-License-Identifier: BSD-3-Clause
// Which stream waits for which: finds kernels that wait for each other.
//
// A kernel may wait for another stream. If that one's kernel waits for the
// first in turn, neither ever ends, which one of them is told instead.
#pragma once

#include <chrono>

namespace openreg {

class Stream;

/// A wait of the command that this thread runs, as long as it lasts. A thread
/// that runs none is waited for by no stream, and is not noted.
class WaitEdge {
 public:
  /// How often a wait must check() for a cycle that another one closes.
  static constexpr std::chrono::milliseconds kCheckEvery{20};

  /// `target` may be null: nothing in this process.
  explicit WaitEdge(const Stream* target);
  WaitEdge(const WaitEdge&) = delete;
  WaitEdge& operator=(const WaitEdge&) = delete;
  ~WaitEdge();

  /// Whether a command waits.
  explicit operator bool() const noexcept {
    return from_ != nullptr;
  }
  /// Throws orErrorNotPermitted if the target waits for the command; of those
  /// that wait for each other, for one only.
  void check();

 private:
  void end() noexcept;

  const Stream* from_ = nullptr;
  const Stream* outer_ = nullptr; // what `from_` waited for before
};

} // namespace openreg
