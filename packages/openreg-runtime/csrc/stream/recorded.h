// SPDX-License-Identifier: BSD-3-Clause
// Activity records of a stream's commands.
#pragma once

#include "activity/recorder.h"
#include "backend/backend.h"
#include "base/error.h"

#include <memory>
#include <optional>

namespace openreg {

/// The place of a command.
struct StreamPlace {
  int device;
  int stream;  // its number
  bool nested; // within a recorded command of the same stream
};

/// Returns the ticket of a command that this thread enqueues now; null if its
/// kind is not recorded.
std::unique_ptr<activity::Ticket> ticket_of(
    const Command& command,
    const StreamPlace& place);
std::unique_ptr<activity::Ticket>
ticket_of(orActivityKind kind, const char* name, const StreamPlace& place);

/// Keeps the record of a finished command. The lane may have measured it.
void end(
    activity::Ticket& ticket,
    Lane& lane,
    const std::optional<Error>& error) noexcept;

} // namespace openreg
