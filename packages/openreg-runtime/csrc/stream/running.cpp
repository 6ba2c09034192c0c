// SPDX-License-Identifier: BSD-3-Clause
// Checks of calls from within a command.
#include "stream/running.h"

namespace openreg {
namespace {

/// Returns the command that contains `running` as a part, or null.
Running* outer_of(const Running& running) {
  return running.part ? running.outer : nullptr;
}

} // namespace

void forget_record() noexcept {
  if (t_running != nullptr && t_running->ticket != nullptr) {
    t_running->ticket->forgotten = true;
  }
}

bool runs_here(const Stream& stream) noexcept {
  for (const Running* each = t_running; each; each = outer_of(*each)) {
    if (each->stream == &stream) {
      return true;
    }
  }
  return false;
}

bool is_recorded_here(const Stream& stream) noexcept {
  for (const Running* each = t_running; each; each = outer_of(*each)) {
    if (each->stream == &stream && each->ticket != nullptr &&
        each->ticket->record.kind <= orActivityMemset) {
      return true;
    }
  }
  return false;
}

void check_may_run_here(const Stream& stream) {
  for (const Running* each = t_running; each; each = outer_of(*each)) {
    if (each->stream == &stream && each->enqueued) {
      throw Failure(
          orErrorNotPermitted,
          "the calling kernel has enqueued work on its own stream, which runs "
          "only after the kernel: expected an asynchronous call");
    }
    if (each->stream == &stream && each->pipelined) {
      throw Failure(
          orErrorNotPermitted,
          "the handler of a message's reply cannot block on its own stream, "
          "where later commands may have started: expected an asynchronous "
          "call");
    }
  }
}

bool note_enqueued_here(const Stream& stream, bool is_work) noexcept {
  bool found = false;
  for (Running* each = t_running; each; each = outer_of(*each)) {
    if (each->stream == &stream) {
      each->enqueued = each->enqueued || is_work;
      found = true;
    }
  }
  return found;
}

bool is_under_way_here(const Stream& stream) noexcept {
  for (const Running* each = t_running; each; each = each->outer) {
    if (each->stream == &stream) {
      return true;
    }
  }
  return false;
}

} // namespace openreg
