// SPDX-License-Identifier: BSD-3-Clause
// The shared state of an event.
#include "ipc/event.h"

#include "base/error.h"
#include "base/file_limit.h"
#include "platform/mapping.h"
#include "platform/wait.h"

#include <algorithm>
#include <string>

namespace openreg::ipc {
namespace {

[[noreturn]] void fail(const char* what, platform::Result result) {
  throw Failure(
      orErrorMemoryAllocation,
      std::string("an interprocess event needs ") + what + ": " +
          result.text());
}

// Also the longest time until the end of a process is detected.
constexpr std::chrono::milliseconds kSlice{20};

} // namespace

std::shared_ptr<SharedEvent> SharedEvent::create(File& file) {
  check_file_size(sizeof(State), "an event for several processes");
  File made;
  if (const auto result =
          platform::create_memory_file("openreg-event", sizeof(State), 0, made);
      !result) {
    fail("a file", result);
  }
  auto event = open(made);
  file = std::move(made);
  return event;
}

std::shared_ptr<SharedEvent> SharedEvent::open(const File& file) {
  std::byte* state = nullptr;
  if (const auto mapped =
          platform::map(file, 0, sizeof(State), /*inherited=*/true, state);
      !mapped) {
    fail("a mapping", mapped);
  }
  // A new file is full of zeros, which is how the state begins.
  return std::shared_ptr<SharedEvent>(
      new SharedEvent(reinterpret_cast<State*>(state)));
}

SharedEvent::~SharedEvent() {
  platform::unmap(reinterpret_cast<std::byte*>(state_), sizeof(State));
}

SharedEvent::Ticket SharedEvent::take() {
  const ProcessId self = this_process();
  Ticket taken = state_->taken.load();
  for (;;) {
    const ProcessId owner = word_of(taken + 1).load();
    if (owner == 0 || !alive(owner)) {
      if (state_->taken.compare_exchange_weak(taken, taken + 1)) {
        state_->failures[(taken + 1) % kWords].store(0);
        word_of(taken + 1).store(self);
        return taken + 1;
      }
    } else if (const Ticket now = state_->taken.load(); now == taken) {
      throw Failure(
          orErrorMemoryAllocation,
          std::to_string(kWords) +
              " records of the event are pending, which is the limit of an "
              "interprocess event");
    } else {
      taken = now;
    }
  }
}

void SharedEvent::publish(Ticket ticket) noexcept {
  Ticket last = state_->last.load();
  while (last < ticket && !state_->last.compare_exchange_weak(last, ticket)) {
  }
}

void SharedEvent::set_failure(Ticket ticket, const Error& error) noexcept {
  state_->failures[ticket % kWords] = static_cast<std::uint32_t>(error.code);
  Ticket nobody = 0;
  if (state_->text_of.compare_exchange_strong(nobody, ticket)) {
    const std::size_t size = std::min(error.message.size(), kMostText - 1);
    error.message.copy(state_->text.data(), size); // the file has zeros
    state_->text_is_complete = true;
  }
}

std::shared_ptr<const Error> SharedEvent::failure(Ticket ticket) const {
  const std::uint32_t code = state_->failures[ticket % kWords];
  if (code == 0 || state_->taken.load() - ticket >= kWords) {
    return nullptr;
  }
  Error error{static_cast<orError_t>(code), "in another process: "};
  const bool has_text = state_->text_of == ticket && state_->text_is_complete;
  error.message += has_text ? state_->text.data() : describe(error.code).text;
  // The same number for every waiting stream. Local failures never have this
  // bit.
  const auto address = reinterpret_cast<std::uintptr_t>(state_);
  error.number =
      (std::uint64_t{1} << 63) | (address * kWords + ticket % kWords);
  return std::make_shared<const Error>(std::move(error));
}

void SharedEvent::reach(Ticket ticket) noexcept {
  word_of(ticket).store(0);
  state_->changes.fetch_add(1);
  platform::wake_all(state_->changes);
}

SharedEvent::Ticket SharedEvent::last() const noexcept {
  return state_->last.load();
}

bool SharedEvent::reached(Ticket ticket) const noexcept {
  return word_of(ticket).load() == 0 || state_->taken.load() - ticket >= kWords;
}

void SharedEvent::check(Ticket ticket) const {
  const ProcessId owner = word_of(ticket).load();
  if (owner == 0 || owner == this_process() || alive(owner) ||
      reached(ticket)) { // just before the end
    return;
  }
  throw Failure(
      orErrorUnknown,
      name_of(owner) +
          " ended before it reached the event record that this call waits for");
}

bool SharedEvent::wait_until(Ticket ticket, Deadline::Clock::time_point time)
    const {
  for (;;) {
    const std::uint32_t changes = state_->changes.load();
    if (reached(ticket)) {
      return true;
    }
    check(ticket);
    const auto left = std::min<Deadline::Clock::duration>(
        time - Deadline::Clock::now(), kSlice);
    if (left <= Deadline::Clock::duration::zero()) {
      return false;
    }
    platform::wait_on(state_->changes, changes, left);
  }
}

} // namespace openreg::ipc
