// SPDX-License-Identifier: BSD-3-Clause
// Records of API calls and of executed commands. The thread that ends a record
// keeps it until orActivityTake() reads it.
#pragma once

#include "base/device_state.h"

#include <openreg/activity.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace openreg::activity {

// Other libraries read it, too.
extern std::atomic<unsigned int> g_kinds;

/// Whether anything is recorded. This check is the only cost while recording is
/// off.
inline bool is_on() noexcept {
  return g_kinds.load(std::memory_order_relaxed) != 0;
}
inline bool is_on(orActivityKind kind) noexcept {
  return (g_kinds.load(std::memory_order_relaxed) >> kind & 1) != 0;
}

/// Nanoseconds of CLOCK_MONOTONIC.
std::uint64_t now() noexcept;

/// Throws orErrorNotPermitted if recording is already on.
void enable(unsigned int kinds, std::size_t capacity);
void disable() noexcept;
/// Writes at most `capacity` records and returns their number. `dropped` is the
/// number of records that found no room.
std::size_t
take(orActivity* records, std::size_t capacity, std::uint64_t& dropped);

void push_id(orActivityIdKind kind, std::uint64_t id);
std::uint64_t pop_id(orActivityIdKind kind) noexcept;

/// A record of running work, whose end is not known yet.
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
/// Waits until no ticket is left; returns false on a timeout.
bool wait_for_tickets(const Deadline& deadline);

/// Returns a ticket for the command that this thread enqueues now.
std::unique_ptr<Ticket>
make_ticket(orActivityKind kind, int device, const char* name);
/// Keeps the record of a finished command, unless its session has ended. The
/// end of a dropped command is the time of the drop.
void end(Ticket& ticket, orError_t error) noexcept;
/// Records an allocation or a free.
void note_block(
    orActivityKind kind,
    int device,
    const void* address,
    std::size_t bytes) noexcept;

} // namespace openreg::activity
