// SPDX-License-Identifier: BSD-3-Clause
// Identifies the state of a stream by its command count, which every command of
// any thread changes.
#include "occl/caller_streams.h"

#include <c10/core/impl/GPUTrace.h>

#include <algorithm>
#include <utility>

namespace openreg::distributed {
namespace {

/// PyTorch's GPU trace must show exactly the real waits.
bool needs_each_wait() {
  return c10::impl::GPUTrace::get_trace() != nullptr;
}

bool all_reached(const CallerStreams::Ends& ends) {
  return std::all_of(ends.begin(), ends.end(), [](const auto& end) {
    return is_reached(*end);
  });
}

} // namespace

std::optional<CallerStreams::Waiting> CallerStreams::find(
    const c10::Stream& caller) const {
  if (needs_each_wait()) {
    return std::nullopt;
  }
  const Progress progress = progress_of(caller);
  if (progress.is_idle()) {
    // An event passes the failure of a stream to the call.
    return has_failed(caller) ? std::nullopt
                              : std::optional(Waiting{progress.enqueued, {}});
  }
  const std::lock_guard lock(mutex_);
  const auto found = waiting_.find(caller);
  if (found == waiting_.end() || found->second.commands != progress.enqueued) {
    return std::nullopt;
  }
  return found->second;
}

std::optional<CallerStreams::Ends> CallerStreams::awaited(
    const c10::Stream& caller) const {
  if (auto waiting = find(caller)) {
    return std::move(waiting->ends);
  }
  return std::nullopt;
}

CallerStreams::Place CallerStreams::follow(
    const c10::Stream& caller,
    const c10::Stream& stream) const {
  if (const auto waiting = find(caller)) {
    for (const auto& end : waiting->ends) {
      end->block(stream);
    }
    return {caller, waiting->commands};
  }
  const uint64_t before = progress_of(caller).enqueued;
  const auto event = record_event(caller);
  event->block(stream);
  const uint64_t commands = progress_of(caller).enqueued;
  // A stream without work needs no record; another thread may use the stream,
  // too.
  if (needs_each_wait() || commands != before + 1 || is_reached(*event)) {
    return {};
  }
  return {caller, commands};
}

void CallerStreams::wait(
    const c10::Stream& caller,
    const std::shared_ptr<c10::Event>& end,
    const Place& issued) {
  if (needs_each_wait()) {
    end->block(caller);
    return;
  }
  if (is_reached(*end)) {
    return;
  }
  const uint64_t before = progress_of(caller).enqueued;
  auto waiting = find(caller);
  if (!waiting && issued.stream == caller && issued.commands == before) {
    waiting = Waiting{before, {}}; // present work precedes the call
  }
  end->block(caller);
  // If it was reached before, the stream may not contain it.
  const bool is_enqueued = !is_reached(*end);
  const uint64_t commands = progress_of(caller).enqueued;
  if (!waiting || !is_enqueued || commands != waiting->commands + 1) {
    return;
  }
  std::erase_if(
      waiting->ends, [](const auto& each) { return is_reached(*each); });
  waiting->ends.push_back(end);
  waiting->commands = commands;
  const std::lock_guard lock(mutex_);
  std::erase_if(waiting_, [](const auto& entry) {
    return all_reached(entry.second.ends);
  });
  waiting_.insert_or_assign(caller, std::move(*waiting));
}

} // namespace openreg::distributed
