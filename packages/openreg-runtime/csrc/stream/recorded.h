// SPDX-License-Identifier: BSD-3-Clause
// The records of what a stream executes.
#pragma once

#include "activity/recorder.h"
#include "backend/backend.h"
#include "base/error.h"

#include <memory>
#include <optional>

namespace openreg {

/// Where a command is.
struct StreamPlace {
  int device;
  int stream;  // its number
  bool nested; // in a command of the same stream that is recorded
};

/// The ticket of a command that this thread asks for now; null if its kind is
/// not recorded.
std::unique_ptr<activity::Ticket> ticket_of(
    const Command& command,
    const StreamPlace& place);
std::unique_ptr<activity::Ticket>
ticket_of(orActivityKind kind, const char* name, const StreamPlace& place);

/// Keeps the record of a command that has ended. The lane may have measured it.
void end(
    activity::Ticket& ticket,
    Lane& lane,
    const std::optional<Error>& error) noexcept;

} // namespace openreg
