// SPDX-License-Identifier: BSD-3-Clause
// Tracks caller streams whose only remaining work is to wait for calls of the
// group. The next call can then follow those calls directly, without passing
// through such a stream's thread.
#pragma once

#include "occl/streams.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

namespace openreg::distributed {

class CallerStreams {
 public:
  using Ends = std::vector<std::shared_ptr<c10::Event>>;

  /// A place in a stream that precedes a call. Without a stream if unknown.
  struct Place {
    std::optional<c10::Stream> stream;
    uint64_t commands = 0;
  };

  /// The ends of the calls that `caller` still waits for; nothing if it may
  /// have other work.
  std::optional<Ends> awaited(const c10::Stream& caller) const;

  /// Makes `stream` wait for the present work of `caller`.
  Place follow(const c10::Stream& caller, const c10::Stream& stream) const;

  /// Makes `caller` wait for the `end` of a call after `issued`, if the call
  /// has not ended. If the call fails, so does the stream.
  void wait(
      const c10::Stream& caller,
      const std::shared_ptr<c10::Event>& end,
      const Place& issued);

 private:
  struct Waiting {
    uint64_t commands; // the stream's count when it began to wait
    Ends ends;
  };
  std::optional<Waiting> find(const c10::Stream& caller) const;

  mutable std::mutex mutex_;
  std::unordered_map<c10::Stream, Waiting> waiting_;
};

} // namespace openreg::distributed
