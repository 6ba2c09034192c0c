// SPDX-License-Identifier: BSD-3-Clause
// Records of what is called and of what runs, each kept by the thread that ends
// it until somebody takes it.
#pragma once

#include "base/device_state.h"

#include <openreg/activity.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace openreg::activity {

// Read from outside of the library too.
extern std::atomic<unsigned int> g_kinds;

/// Whether anything is recorded: the one thing that costs while nothing is.
inline bool is_on() noexcept {
  return g_kinds.load(std::memory_order_relaxed) != 0;
}
inline bool is_on(orActivityKind kind) noexcept {
  return (g_kinds.load(std::memory_order_relaxed) >> kind & 1) != 0;
}

/// Nanoseconds of CLOCK_MONOTONIC.
std::uint64_t now() noexcept;

/// Throws orErrorNotPermitted if it is on.
void enable(unsigned int kinds, std::size_t capacity);
void disable() noexcept;
/// Writes at most `capacity` records; returns how many, and how many found no
/// room before.
std::size_t
take(orActivity* records, std::size_t capacity, std::uint64_t& dropped);

void push_id(orActivityIdKind kind, std::uint64_t id);
std::uint64_t pop_id(orActivityIdKind kind) noexcept;

/// What is under way: a record without its end.
class Ticket {
 public:
  Ticket(const orActivity& started, std::uint64_t session) noexcept;
  Ticket(const Ticket&) = delete;
  Ticket& operator=(const Ticket&) = delete;
  ~Ticket();

  orActivity record;
  bool forgotten = false; // it leaves no record

 private:
  friend void end(Ticket& ticket, orError_t error) noexcept;
  const std::uint64_t session_; // in which it began
};
/// Waits until there is no ticket; false if the time was not enough.
bool wait_for_tickets(const Deadline& deadline);

/// A ticket of what this thread asks for now.
std::unique_ptr<Ticket>
make_ticket(orActivityKind kind, int device, const char* name);
/// Keeps the record of something that has ended, unless its session is over.
/// What never started ended when it was dropped.
void end(Ticket& ticket, orError_t error) noexcept;
/// Keeps the record of a block.
void note_block(
    orActivityKind kind,
    int device,
    const void* address,
    std::size_t bytes) noexcept;

} // namespace openreg::activity
