// SPDX-License-Identifier: BSD-3-Clause
// Executes each kind of entry and handles its failure.
#include "stream/runner.h"

#include "base/process.h"
#include "stream/recorded.h"
#include "stream/running.h"
#include "stream/stream.h"
#include "stream/wait_graph.h"

#include <chrono>
#include <string>
#include <utility>
#include <variant>

namespace openreg {
namespace {

/// Converts the current exception to the error of `what`.
Error error_of(const char* what) {
  try {
    throw;
  } catch (const Failure& failure) {
    return failure.error();
  } catch (const std::exception& exception) {
    return {
        orErrorLaunchFailure,
        std::string(what) + " threw an exception: " + text_of(exception)};
  } catch (...) {
    return {
        orErrorLaunchFailure,
        std::string(what) + " threw an object that is not an exception"};
  }
}

bool is_message(const Command& command) {
  return std::holds_alternative<Message>(command);
}

/// The failure site under which a command is counted.
orFailureSite site_of(const Command& command) {
  return std::holds_alternative<Launch>(command) || is_message(command)
      ? orFailureLaunch
      : orFailureCopy;
}

/// The ticket of an entry or a node of a graph.
template <typename Action>
std::unique_ptr<activity::Ticket> ticket_of_work(
    const Action& action,
    const StreamPlace& place) {
  if (const auto* command = std::get_if<Command>(&action)) {
    return ticket_of(*command, place);
  }
  return std::holds_alternative<HostCall>(action)
      ? ticket_of(orActivityHostFunc, "host function", place)
      : nullptr;
}

} // namespace

void Runner::inject_failure(Entry& entry) const {
  const auto* command = entry.as<Command>();
  if (command == nullptr) {
    return;
  }
  if (auto hit = failure_injection::next(site_of(*command), stream_.device())) {
    entry.hit = std::make_unique<failure_injection::Hit>(std::move(*hit));
  }
}

void Runner::begin_record(Entry& entry, bool may_be_part) const {
  const StreamPlace place{
      stream_.device(),
      stream_.number(),
      may_be_part && is_recorded_here(stream_)};
  if (entry.as<AwaitPoint>()) {
    entry.ticket = ticket_of(orActivityWait, "wait for an event", place);
  } else if (auto* run = entry.as<GraphRun>()) {
    const auto& nodes = run->graph->branches()[run->branch].nodes;
    for (std::size_t i = run->nodes.begin; i < run->nodes.end; ++i) {
      run->tickets.push_back(ticket_of_work(nodes[i], place));
    }
  } else {
    entry.ticket = ticket_of_work(entry.action, place);
  }
}

std::optional<Error> Runner::execute(
    const Entry& entry,
    const std::optional<Error>& before) {
  return recorded(
      entry.ticket.get(), [&] { return execute_unrecorded(entry, before); });
}

std::optional<Error> Runner::execute_in_call(
    Entry& entry,
    bool in_own_kernel,
    const std::optional<Error>& before) {
  if (failure_injection::armed()) [[unlikely]] {
    // A message on the stream of a kernel that runs is a part of its launch.
    const auto* command = entry.as<Command>();
    const bool is_part = in_own_kernel && command && is_message(*command);
    if (!is_part && state_.usable_since(entry.epoch)) {
      inject_failure(entry);
    }
  }
  const auto limit = lane_->exchange_limit(state_.wait_timeout());
  auto error = execute(entry, before);
  lane_->exchange_limit(limit);
  if (error) {
    return error;
  }
  return state_.failure_since(entry.epoch);
}

void Runner::stamp(
    Point& point,
    DeviceState::Epoch epoch,
    const std::optional<Error>& before) const {
  if (const auto failure = state_.failure_since(epoch)) {
    point.fail(*failure);
  } else if (before) {
    point.fail(*before);
  }
  point.stamp();
}

bool Runner::queues(const Entry& entry) const noexcept {
  const auto* command = entry.as<Command>();
  return command != nullptr && lane_->queues(*command);
}

std::optional<Error> Runner::begin(const Entry& entry) {
  auto error = state_.failure_since(entry.epoch);
  lane_->measure(entry.ticket != nullptr);
  if (!error) {
    error = attempt([&] { lane_->begin(*entry.as<Command>()); });
  }
  return error;
}

void Runner::finish(const Entry& entry, std::optional<Error>& error) {
  if (!error) {
    error = attempt([&] { lane_->finish(); });
  }
  if (entry.ticket != nullptr) [[unlikely]] {
    openreg::end(*entry.ticket, *lane_, error);
  }
  end(entry, error);
}

void Runner::release(const Entry& entry, std::optional<Error>& error) {
  const Cleanup cleanup = cleanup_of(entry.action);
  if (cleanup.function == nullptr) {
    return;
  }
  const LastErrorScope scope;
  if (error) {
    set_last_error("orLaunchKernel", error->code, error->message);
  }
  try {
    cleanup.function(cleanup.args);
  } catch (...) {
    if (!error) {
      error = error_of("the cleanup of a launch");
    }
  }
}

void Runner::end(const Entry& entry, std::optional<Error>& error) const {
  release(entry, error);
  if (error && !state_.usable_since(entry.epoch)) {
    error.reset();
  }
}

/// Runs `work` and measures it for a ticket, which may be null.
template <typename Work>
std::optional<Error> Runner::recorded(
    activity::Ticket* ticket,
    const Work& work) {
  if (ticket == nullptr) [[likely]] {
    return work();
  }
  t_running->ticket = ticket;
  ticket->record.started = activity::now();
  lane_->measure(true);
  auto error = work();
  lane_->measure(false);
  openreg::end(*ticket, *lane_, error);
  return error;
}

std::optional<Error> Runner::execute_unrecorded(
    const Entry& entry,
    const std::optional<Error>& before) {
  if (auto failure = state_.failure_since(entry.epoch)) {
    return failure;
  }
  if (before) {
    return before;
  }
  if (const auto* wait = entry.as<AwaitPoint>()) {
    std::optional<Error> failure;
    auto error = attempt([&] { failure = wait_for(*wait->point); });
    return error ? error : failure;
  }
  if (const auto* run = entry.as<GraphRun>()) {
    return execute_run(*run, entry.epoch);
  }
  return attempt([&] {
    if (entry.hit) {
      entry.hit->apply(&state_);
      if (auto failure = state_.failure_since(entry.epoch)) {
        throw Dropped(std::move(*failure)); // since the delay
      }
    }
    if (const auto* command = entry.as<Command>()) {
      lane_->execute(*command);
    } else {
      std::get<HostCall>(entry.action)();
    }
  });
}

/// Returns the failure of a node; later nodes are dropped.
std::optional<Error> Runner::execute_run(
    const GraphRun& run,
    DeviceState::Epoch epoch) {
  const auto& nodes = run.graph->branches()[run.branch].nodes;
  for (std::size_t i = run.nodes.begin; i < run.nodes.end; ++i) {
    const Graph::Node& node = nodes[i];
    const auto* command = std::get_if<Command>(&node);
    const auto work = [&] {
      if (command == nullptr) {
        std::get<HostCall>(node)();
        return;
      }
      if (auto hit =
              failure_injection::next(site_of(*command), stream_.device())) {
        hit->apply(&state_);
      }
      lane_->execute(*command);
    };
    auto* ticket =
        run.tickets.empty() ? nullptr : run.tickets[i - run.nodes.begin].get();
    auto error = recorded(ticket, [&] { return attempt(work); });
    if (!error) {
      error = state_.failure_since(epoch);
    }
    if (error) {
      return error;
    }
  }
  return std::nullopt;
}

/// Returns the failure of `work`; a sticky failure fails the device.
template <typename Work>
std::optional<Error> Runner::attempt(const Work& work) {
  try {
    work();
    return std::nullopt;
  } catch (const Dropped& dropped) {
    return dropped.error();
  } catch (...) {
    Error error = error_of("a kernel");
    if (DeviceState::sticks(error.code)) {
      state_.fail(error);
    }
    return error;
  }
}

/// Returns the failure of the work before the point.
std::optional<Error> Runner::wait_for(Point& point) const {
  std::optional<WaitEdge> edge; // for kernels that wait for this stream
  if (!point.reached()) {
    edge.emplace(point);
  }
  // Waits in slices, because a lost device or an exiting process ends the wait.
  constexpr std::chrono::milliseconds kSlice{20};
  while (!point.wait_until(Point::Clock::now() + kSlice)) {
    if (state_.failed() || process::exiting()) {
      return std::nullopt;
    }
  }
  const auto failure = point.failure();
  return failure ? std::optional(*failure) : std::nullopt;
}

} // namespace openreg
