// SPDX-License-Identifier: BSD-3-Clause
// The entries of a stream's queue.
#pragma once

#include "activity/recorder.h"
#include "backend/backend.h"
#include "base/device_state.h"
#include "failures/failure_injection.h"
#include "stream/event.h"
#include "stream/graph.h"

#include <memory>
#include <variant>

namespace openreg {

struct RecordPoint {
  std::shared_ptr<Point> point;
};
struct AwaitPoint {
  std::shared_ptr<Point> point;
};
struct ForgetFailure {}; // of the stream
/// Makes a waiting thread the executor. It is never first in the queue while
/// there is no executor.
struct GiveTurn {
  bool* granted; // null: the thread no longer waits
};
using Action = std::variant<
    Command,
    HostCall,
    RecordPoint,
    AwaitPoint,
    ForgetFailure,
    GiveTurn,
    GraphRun>;

struct Entry {
  Action action;
  DeviceState::Epoch epoch;
  // Null unless an injected failure hits the command.
  std::unique_ptr<const failure_injection::Hit> hit{};
  // Null unless the command is recorded.
  std::unique_ptr<activity::Ticket> ticket{};

  /// The action if it is of this type, or null.
  template <typename Type>
  const Type* as() const noexcept {
    return std::get_if<Type>(&action);
  }
  template <typename Type>
  Type* as() noexcept {
    return std::get_if<Type>(&action);
  }
  /// Entries that cost almost nothing and that callers add while they hold
  /// locks.
  bool is_mark() const noexcept {
    return as<RecordPoint>() || as<AwaitPoint>() || as<ForgetFailure>();
  }
};

} // namespace openreg
