// SPDX-License-Identifier: BSD-3-Clause
// Which streams of the caller have nothing left to do but to wait for calls of
// the group. The next call then comes after those calls, with no way through
// the thread of such a stream.
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

  /// A stream up to some command, which a call comes after. No stream if nobody
  /// knows.
  struct Place {
    std::optional<c10::Stream> stream;
    uint64_t commands = 0;
  };

  /// The ends of the calls that `caller` still waits for; nothing if it may
  /// have other work to do.
  std::optional<Ends> awaited(const c10::Stream& caller) const;

  /// Lets `stream` wait for what `caller` has to do.
  Place follow(const c10::Stream& caller, const c10::Stream& stream) const;

  /// Makes `caller` wait for `end` of a call that comes after `issued`, if the
  /// call has not ended. If the call fails, so does the stream.
  void wait(
      const c10::Stream& caller,
      const std::shared_ptr<c10::Event>& end,
      const Place& issued);

 private:
  struct Waiting {
    uint64_t commands; // of the stream, if it has not got others since
    Ends ends;
  };
  std::optional<Waiting> find(const c10::Stream& caller) const;

  mutable std::mutex mutex_;
  std::unordered_map<c10::Stream, Waiting> waiting_;
};

} // namespace openreg::distributed
