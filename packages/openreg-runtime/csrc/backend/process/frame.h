// SPDX-License-Identifier: BSD-3-Clause
// The protocol between the host and a device process.
//
// Each stream has a lane: shared memory with a pipe of commands to the device
// and a pipe of replies back. Each command gets one reply, in the same order.
#pragma once

#include "backend/process/pipe.h"

#include <cstddef>
#include <cstdint>

namespace openreg {

enum class CommandKind : std::uint32_t {
  kMessage, // `size` bytes follow
  kWrite,   // `size` bytes follow, for `address`
  kRead,    // `size` bytes from `address`, in the reply
  kCopy,    // `size` bytes from `source` to `address`
  kFill,    // `size` bytes of `value` at `address`
  kRelease, // pages, which read as zero afterwards
};

struct CommandFrame {
  CommandKind kind;
  std::uint32_t value;
  std::uint64_t address; // of the device, as the host names it
  std::uint64_t source;
  std::uint64_t size;
  std::uint32_t measured;    // 1: the reply has its times
  std::uint32_t follows = 0; // 1: dropped if the one before it failed
};

/// `size` bytes follow: the requested data, or the text of an error.
struct ReplyFrame {
  std::uint32_t error; // an orError_t
  std::uint32_t unused;
  std::uint64_t size;
  std::uint64_t started; // nanoseconds of CLOCK_MONOTONIC; 0: not measured
  std::uint64_t ended;
};

/// The shared memory of a lane.
struct LaneMemory {
  static constexpr std::size_t kCapacity = std::size_t{1} << 20; // of a pipe

  PipeState commands;
  PipeState replies;
  alignas(4096) std::byte command_bytes[kCapacity];
  std::byte reply_bytes[kCapacity];
};

constexpr std::uint64_t kMostMessageBytes = std::uint64_t{1} << 32;
/// The longest error text; the rest is cut off.
constexpr std::uint64_t kMostText = std::uint64_t{1} << 20;
/// A reply describes results and does not contain their data.
constexpr std::uint64_t kMostReplyBytes = std::uint64_t{1} << 28;

} // namespace openreg
