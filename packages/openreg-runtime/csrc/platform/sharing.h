// SPDX-License-Identifier: BSD-3-Clause
// Memory files that other processes of the same user open, and their claims on
// parts of a file.
#pragma once

#include "platform/file.h"
#include "platform/process.h"
#include "platform/result.h"

#include <array>
#include <atomic>
#include <cstdint>

namespace openreg::platform {

/// Makes a file available to other processes, under a number in this process,
/// until the file is closed.
Result publish(const File& file, std::int32_t& number);

/// Opens a file that another process has published. If it has closed the file,
/// the result is success, without a file.
Result open_published(
    ProcessId owner,
    std::int32_t number,
    const FileId& id,
    File& file);

/// Room for claims, in a file that processes share. Full of zeros at first. The
/// build sets its size, because claims that are locks of the system need none.
struct ClaimRoom {
  static constexpr std::size_t kMost = OPENREG_CLAIMS;
  std::array<std::atomic<std::uint64_t>, kMost> claims;
};

/// Claims the room at `position` of a file. The claim ends with end_claim(), or
/// with this process. `claim` identifies it. Fails with Result::full() where
/// the system counts claims and the room is full.
Result begin_claim(const File& file, std::uint64_t position, int& claim);
void end_claim(const File& file, std::uint64_t position, int claim) noexcept;
/// Whether another process claims the room.
bool is_claimed(const File& file, std::uint64_t position) noexcept;

/// Forbids other processes of the same user to read the memory of this process.
/// Linux has a function for that, and macOS has one against debuggers. POSIX
/// has none: the call succeeds, and the memory can be read. Windows has no
/// processes that need it, and the call fails.
Result forbid_inspection();

} // namespace openreg::platform
