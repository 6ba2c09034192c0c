// SPDX-License-Identifier: BSD-3-Clause
// A call as it runs on a thread: its end is the outcome, a line of the flight
// record and, if it failed, the end of the group.
#pragma once

#include "occl/work.h"
#include "record/flight.h"
#include "transport/engine.h"

#include <exception>
#include <functional>
#include <memory>
#include <string>

namespace openreg::distributed {

/// What C++ says of an error, without its stack.
std::string text_of(const std::exception& error);

/// Fails a call, and with it the group. Returns where the record of that is, as
/// an end of the message.
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

  /// Returns when the call has ended. Throws its failure, which fails the
  /// stream and so all that waits for it.
  void run();
  /// Runs it if it need not wait for other ranks. Returns whether it has ended;
  /// otherwise run() has to follow.
  bool attempt();
  /// It ends without having run, unless it has.
  void drop();

 private:
  bool run(bool is_attempt);
  /// Ends one that has run, too.
  void end_with(const std::string& what, bool is_abandoned);

  Task task_; // ends before others learn of the end
  const CallName name_;
  const std::shared_ptr<Engine> engine_;
  const std::shared_ptr<Outcome> outcome_;
  const FlightRecord::Span span_;
};

} // namespace openreg::distributed
