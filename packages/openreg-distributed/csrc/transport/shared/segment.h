// SPDX-License-Identifier: BSD-3-Clause
// The memory that the ranks of a group share, if all are on one host.
//
// It is a file without a name, which ends with the last process that has it
// mapped. The first rank makes it, the others open it through /proc/<pid>/fd.
#pragma once

#include "base/maker.h"
#include "transport/transport.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <sys/types.h>

namespace openreg::distributed {

/// What a rank is about to do, for the others to compare with.
struct Call {
  uint8_t kind;      // a c10d::OpType
  uint8_t operation; // a c10d::ReduceOp::RedOpType; UNUSED if it only moves
  int8_t type;       // a c10::ScalarType of what is reduced
  int32_t root;      // -1 if it has none
  uint64_t bytes;    // 0 where ranks may differ

  bool operator==(const Call&) const = default;
};

enum class Membership : uint32_t { kMember, kFailed, kLeft };

/// What the others see of a rank.
struct RankState {
  /// How many steps of collectives it has come to. In each, it offers what is
  /// in its slot for the step, and has read all that it needs of the step
  /// before.
  alignas(64) std::atomic<uint64_t> posted;
  std::array<Call, 2> calls; // of steps, in turn
  /// Rises with all that may concern a thread of this rank, which sleeps on it.
  alignas(64) std::atomic<uint32_t> bell;
  std::atomic<uint32_t> sleepers;
  alignas(64) std::atomic<Membership> membership;
  std::array<char, 500> why; // it is no member
};

/// Messages from one rank to another: how many parts were written and read.
struct ChannelState {
  alignas(64) std::atomic<uint64_t> written;
  alignas(64) std::atomic<uint64_t> read;
};

/// One part of a message, which its bytes follow.
struct PartHeader {
  uint64_t message_bytes;
  int64_t tag;
};

static_assert(std::atomic<uint64_t>::is_always_lock_free);

class Segment {
 public:
  // What fits into the caches of two cores, so that the copies on the way cost
  // little beside those of the tensors.
  static constexpr size_t kSlotBytes = size_t{1} << 20;
  static constexpr size_t kPartBytes = size_t{128} << 10;
  static constexpr size_t kParts = 4;

  /// A new file for so many ranks; the others find it by `file()`. Null if the
  /// system gives none.
  static std::unique_ptr<Segment> create(int ranks);
  /// The file of another process. Null if it cannot be opened, or is another.
  static std::unique_ptr<Segment>
  open(int ranks, pid_t process, int file, uint64_t token);
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  ~Segment();

  int ranks() const {
    return ranks_;
  }
  int file() const {
    return file_;
  }
  /// False in a forked child.
  bool is_mapped() const;
  /// A number that no other segment has.
  uint64_t token() const;
  /// After all ranks have it: none can open it from here on.
  void close_file();

  RankState& state(int rank) const;
  /// Two slots for each rank, which steps take in turn.
  std::byte* slot(int rank, uint64_t step) const;
  ChannelState& channel(int from, int to) const;
  PartHeader& part(int from, int to, uint64_t number) const;

 private:
  Segment(int ranks, int file, std::byte* begin);
  static std::unique_ptr<Segment> map(int ranks, int file);
  static size_t size_for(int ranks);

  // Slots have room for what ranks give, and for what they have reduced.
  static constexpr size_t kSlotSpan = 2 * kSlotBytes;
  static constexpr size_t kPartSpan = kPartBytes + 64;

  int ranks_;
  int file_;
  std::byte* begin_;
  Maker maker_; // has the mapping
};

} // namespace openreg::distributed
