// SPDX-License-Identifier: BSD-3-Clause
// A running call. When it ends, it sets the outcome and an entry of the flight
// record. A failure also ends the group.
#pragma once

#include "occl/work.h"
#include "record/flight.h"
#include "transport/engine.h"

#include <exception>
#include <functional>
#include <memory>
#include <string>

namespace openreg::distributed {

/// The text of an error without the C++ stack.
std::string text_of(const std::exception& error);

/// Fails a call and its group. Returns the path of the flight record as a
/// suffix for the message.
std::string
fail(const std::string& message, Engine& engine, FlightRecord::Span span);

class Execution {
 public:
  /// Returns a source rank or -1.
  using Task = std::function<int(Engine&)>;

  Execution(
      Task task,
      CallName name,
      std::shared_ptr<Engine> engine,
      std::shared_ptr<Outcome> outcome,
      FlightRecord::Span span);

  /// Runs the call to its end. Throws its failure, which fails the stream and
  /// everything that waits for it.
  void run();
  /// Runs the call if it need not wait for other ranks. Returns whether it has
  /// ended; otherwise run() must follow.
  bool attempt();
  /// Ends the call without running it, unless it has run.
  void drop();

 private:
  bool run(bool is_attempt);
  /// Ends the call, even if it has run.
  void end_with(const std::string& what, bool is_abandoned);

  Task task_; // destroyed before the end is reported
  const CallName name_;
  const std::shared_ptr<Engine> engine_;
  const std::shared_ptr<Outcome> outcome_;
  const FlightRecord::Span span_;
};

} // namespace openreg::distributed
