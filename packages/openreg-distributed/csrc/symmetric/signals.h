// SPDX-License-Identifier: BSD-3-Clause
// Signal pads: words in each rank's memory that other ranks set and the rank
// clears. They are zero when no rank waits.
#pragma once

#include "occl/pending.h"
#include "platform/process.h"
#include "transport/transport.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace openreg::distributed {

class Signals {
 public:
  /// `pads` are the kernel addresses of each rank's pad of `words` words.
  /// `processes` is null for this rank. `pending` ends waits.
  Signals(
      std::vector<uint32_t*> pads,
      size_t words,
      std::vector<std::shared_ptr<const Process>> processes,
      std::shared_ptr<const Pending> pending,
      int rank,
      std::string group);

  /// Throws if the pads do not have this channel, or if the group has ended.
  void check(const char* name, int channel) const;
  void check_rank(const char* name, int rank) const;

  // The following functions block and run on stream threads. A limit of 0 means
  // no limit.
  void barrier(int channel, Milliseconds limit) const;
  void put(int rank, int channel, Milliseconds limit) const;
  void wait(int rank, int channel, Milliseconds limit) const;

 private:
  int size() const {
    return static_cast<int>(pads_.size());
  }
  std::string describe(const char* name, int channel) const;
  /// The word for signals of `from` to `to`.
  uint32_t& word(int from, int to, int channel) const;
  /// Changes a word of two ranks once it is `before`.
  void exchange(
      const char* name,
      int from,
      int to,
      int channel,
      uint32_t before,
      Milliseconds limit) const;

  std::vector<uint32_t*> pads_;
  size_t words_;
  std::vector<std::shared_ptr<const Process>> processes_;
  std::shared_ptr<const Pending> pending_;
  int rank_;
  std::string group_;
};

} // namespace openreg::distributed
