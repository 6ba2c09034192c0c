// SPDX-License-Identifier: BSD-3-Clause
// Interprocess events.
//
// The state is a small file that each process maps. A record takes the next
// ticket number. For each ticket, one word names the process that has to reach
// it. The words are used in turn, and a record takes a word only after its
// previous owner has reached it. Therefore a ticket whose word was reused has
// been reached.
#pragma once

#include "base/device_state.h"
#include "base/error.h"
#include "ipc/handle.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace openreg::ipc {

class SharedEvent {
 public:
  using Ticket = std::uint64_t; // 0 before the first record

  /// Creates an event in a new file. Throws orErrorMemoryAllocation.
  static std::shared_ptr<SharedEvent> create(File& file);
  /// Opens the event in `file`. Throws orErrorMemoryAllocation.
  static std::shared_ptr<SharedEvent> open(const File& file);
  SharedEvent(const SharedEvent&) = delete;
  SharedEvent& operator=(const SharedEvent&) = delete;
  ~SharedEvent();

  /// Starts a record of this process, not visible to others yet. Throws
  /// orErrorMemoryAllocation if too many records are pending.
  Ticket take();
  /// Makes it the last record, unless a later one has been published.
  void publish(Ticket ticket) noexcept;
  /// Marks a record as failed; called before the record is reached.
  void set_failure(Ticket ticket, const Error& error) noexcept;
  /// The failure of a reached record, or null.
  std::shared_ptr<const Error> failure(Ticket ticket) const;
  void reach(Ticket ticket) noexcept;
  /// The last record.
  Ticket last() const noexcept;
  bool reached(Ticket ticket) const noexcept;
  /// Throws orErrorUnknown if the process that has to reach `ticket` has ended.
  void check(Ticket ticket) const;
  /// Returns false on a timeout. Throws as check().
  bool wait_until(Ticket ticket, Deadline::Clock::time_point time) const;

 private:
  static constexpr std::size_t kWords = std::size_t{1} << 14;
  static constexpr std::size_t kMostText = 1024; // more is cut off
  struct State {
    std::atomic<Ticket> taken;
    std::atomic<Ticket> last;
    std::atomic<std::uint32_t> changes; // what waiting threads sleep on
    std::array<std::atomic<ProcessId>, kWords> unreached;
    // For each word, the error code of its record, or 0.
    std::array<std::atomic<std::uint32_t>, kWords> failures;
    // The text of the first failure.
    std::atomic<Ticket> text_of; // the record that failed; 0: none
    std::atomic<bool> text_is_complete;
    std::array<char, kMostText> text;
  };
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

  explicit SharedEvent(State* state) : state_(state) {}

  std::atomic<ProcessId>& word_of(Ticket ticket) const noexcept {
    return state_->unreached[ticket % kWords];
  }

  State* const state_;
};

} // namespace openreg::ipc
