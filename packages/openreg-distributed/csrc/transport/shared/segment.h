// SPDX-License-Identifier: BSD-3-Clause
// The shared memory of a group whose ranks are all on one host.
//
// It is an unnamed file, which ends with the last process that maps it. The
// first rank creates it, and the others open it.
#pragma once

#include "base/maker.h"
#include "platform/shared_file.h"
#include "transport/transport.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace openreg::distributed {

/// A rank's call, which the others compare with their own.
struct Call {
  uint8_t kind;      // a c10d::OpType
  uint8_t operation; // a c10d::ReduceOp::RedOpType; UNUSED without reduction
  int8_t type;       // the c10::ScalarType of a reduction
  int32_t root;      // -1: none
  uint64_t bytes;    // 0 if ranks may differ

  bool operator==(const Call&) const = default;
};

enum class Membership : uint32_t { kMember, kFailed, kLeft };

/// The shared state of a rank.
struct RankState {
  /// The number of collective steps that the rank has reached. In each step its
  /// slot is filled, and it has read all data it needs from the previous step.
  alignas(64) std::atomic<uint64_t> posted;
  std::array<Call, 2> calls; // of steps, in turn
  /// Incremented on every change that may concern this rank's threads, which
  /// sleep on it.
  alignas(64) std::atomic<uint32_t> bell;
  std::atomic<uint32_t> sleepers;
  alignas(64) std::atomic<Membership> membership;
  std::array<char, 500> why; // it has left
};

/// A channel from one rank to another: the numbers of written and read parts.
struct ChannelState {
  alignas(64) std::atomic<uint64_t> written;
  alignas(64) std::atomic<uint64_t> read;
};

/// The header of a message part; its bytes follow.
struct PartHeader {
  uint64_t message_bytes;
  int64_t tag;
};

static_assert(std::atomic<uint64_t>::is_always_lock_free);

class Segment {
 public:
  // Fits into the caches of two cores, so that the extra copies cost little
  // compared to accesses of the tensors.
  static constexpr size_t kSlotBytes = size_t{1} << 20;
  static constexpr size_t kPartBytes = size_t{128} << 10;
  static constexpr size_t kParts = 4;

  /// Creates a file for `ranks` ranks, which the others open through `file()`.
  /// Null if the system refuses.
  static std::unique_ptr<Segment> create(int ranks);
  /// Opens the file of another process. Null if it cannot be opened or is a
  /// different file.
  static std::unique_ptr<Segment>
  open(int ranks, int process, int64_t file, uint64_t token);
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  ~Segment();

  int ranks() const {
    return ranks_;
  }
  /// The number of the file.
  int64_t file() const {
    return file_.number();
  }
  /// False in a forked child.
  bool is_mapped() const;
  /// A number unique to this segment.
  uint64_t token() const;
  /// Closes the file after all ranks have opened it.
  void close_file();

  RankState& state(int rank) const;
  /// Two slots per rank, used alternately by the steps.
  std::byte* slot(int rank, uint64_t step) const;
  ChannelState& channel(int from, int to) const;
  PartHeader& part(int from, int to, uint64_t number) const;

 private:
  Segment(int ranks, SharedFile file, std::byte* begin);
  static std::unique_ptr<Segment> map(int ranks, SharedFile file);
  static size_t size_for(int ranks);

  // A slot has room for a rank's input and for its reduced result.
  static constexpr size_t kSlotSpan = 2 * kSlotBytes;
  static constexpr size_t kPartSpan = kPartBytes + 64;

  int ranks_;
  SharedFile file_;
  std::byte* begin_;
  Maker maker_; // has the mapping
};

} // namespace openreg::distributed
