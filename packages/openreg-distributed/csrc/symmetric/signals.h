// SPDX-License-Identifier: BSD-3-Clause
// Signal pads: words in the memory of each rank that the others set and the
// rank takes back. They are zero wherever nobody waits.
#pragma once

#include "occl/pending.h"
#include "transport/shared/process.h"
#include "transport/transport.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace openreg::distributed {

class Signals {
 public:
  /// Where kernels find the pad of each rank, and so many words of it.
  /// `processes` is null for the own rank. `pending` ends what waits.
  Signals(
      std::vector<uint32_t*> pads,
      size_t words,
      std::vector<std::shared_ptr<const Process>> processes,
      std::shared_ptr<const Pending> pending,
      int rank,
      std::string group);

  /// Throws if pads have no room for such a channel, or if the group has ended.
  void check(const char* name, int channel) const;
  void check_rank(const char* name, int rank) const;

  // These block, and run on the threads of streams. No limit for 0.
  void barrier(int channel, Milliseconds limit) const;
  void put(int rank, int channel, Milliseconds limit) const;
  void wait(int rank, int channel, Milliseconds limit) const;

 private:
  int size() const {
    return static_cast<int>(pads_.size());
  }
  std::string describe(const char* name, int channel) const;
  /// The word by which `from` signals to `to`.
  uint32_t& word(int from, int to, int channel) const;
  /// Changes a word of both ranks, once it is `before`.
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
