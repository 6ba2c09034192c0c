// SPDX-License-Identifier: BSD-3-Clause
// Runs the task of a call and reports its end.
#include "occl/execution.h"

#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <c10/util/Exception.h>

#include <optional>
#include <stdexcept>
#include <utility>

namespace openreg::distributed {

std::string text_of(const std::exception& error) {
  // what() would include the C++ stack.
  const auto* known = dynamic_cast<const c10::Error*>(&error);
  return known != nullptr ? known->what_without_backtrace() : error.what();
}

std::string
fail(const std::string& message, Engine& engine, FlightRecord::Span span) {
  FlightRecord& flight = FlightRecord::get();
  flight.set_ended(span, message);
  return engine.fail(message) ? flight.write_after(message) : std::string{};
}

Execution::Execution(
    Task task,
    CallName name,
    std::shared_ptr<Engine> engine,
    std::shared_ptr<Outcome> outcome,
    FlightRecord::Span span)
    : task_(std::move(task)),
      name_(std::move(name)),
      engine_(std::move(engine)),
      outcome_(std::move(outcome)),
      span_(span) {}

void Execution::run() {
  run(/*is_attempt=*/false);
  const auto failure = outcome_->failure();
  if (!failure) {
    return;
  }
  try {
    std::rethrow_exception(failure);
  } catch (const c10::Error& error) {
    // The stream's error contains all of what(), including the C++ stack.
    throw std::runtime_error(error.what_without_backtrace());
  }
}

bool Execution::attempt() {
  // Operators of the call are not part of the caller's profile.
  const at::DisableRecordFunctionGuard unrecorded;
  const Attempt attempt;
  return run(/*is_attempt=*/true);
}

bool Execution::run(bool is_attempt) {
  const at::NoGradGuard no_grad;
  const at::AutoDispatchBelowADInplaceOrView below;
  FlightRecord::get().set_started(span_);
  std::string why = engine_->failure();
  int source = -1;
  bool abandoned = false;
  if (why.empty()) {
    try {
      source = task_(*engine_);
    } catch (const NotYet&) {
      TORCH_INTERNAL_ASSERT(is_attempt);
      return false;
    } catch (const std::exception& error) {
      why = text_of(error);
      abandoned = engine_->threads_run();
    }
  }
  task_ = nullptr;
  if (why.empty()) {
    FlightRecord::get().set_ended(span_, {});
    outcome_->finish(nullptr, source);
  } else {
    end_with("failed: " + why, abandoned);
  }
  return true;
}

void Execution::drop() {
  if (!outcome_->is_finished()) {
    end_with("did not run: " + why_dropped(), /*is_abandoned=*/false);
  }
}

void Execution::end_with(const std::string& what, bool is_abandoned) {
  const std::string message = c10::str("occl: ", name_.text(), " ", what);
  const std::string where = fail(message, *engine_, span_);
  outcome_->finish(
      std::make_exception_ptr(
          C10_BUILD_ERROR(DistBackendError, message + where)),
      /*source_rank=*/-1,
      is_abandoned);
}

} // namespace openreg::distributed
