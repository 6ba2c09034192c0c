// SPDX-License-Identifier: BSD-3-Clause
// Waits for other ranks, without occupying a core and with a limit.
#pragma once

#include "base/patience.h"
#include "platform/process.h"
#include "transport/shared/segment.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace openreg::distributed {

/// The deadline of an operation, and the limit from which it was computed.
struct Deadline {
  explicit Deadline(Milliseconds given)
      : limit(given), end(Clock::now() + given) {}
  Milliseconds limit;
  Clock::time_point end;
};

/// This rank among the ranks that share a segment.
class Peers {
 public:
  /// `processes` by rank.
  Peers(
      std::unique_ptr<Segment> segment,
      int rank,
      std::vector<std::shared_ptr<const Process>> processes);
  /// Notifies the other ranks that this rank has left.
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  int rank() const {
    return rank_;
  }
  int size() const {
    return segment_->ranks();
  }
  Segment& segment() const {
    return *segment_;
  }

  /// Ends the waits of this rank and other ranks' waits for it. Only the first
  /// call counts; calls of a forked child do nothing.
  void leave(Membership membership, const std::string& why = {});

  /// Wakes the threads of a rank after a change that may concern them.
  void ring(int rank) const;
  void ring_others() const;
  /// Must be read before the awaited condition.
  uint32_t bell() const {
    return own().bell.load(std::memory_order_seq_cst);
  }
  /// Returns once the bell has rung since it was `heard`, or after `limit`.
  void sleep(uint32_t heard, Milliseconds limit) const;

  /// Throws if this rank has left, or if another rank has ended for which
  /// `missing(rank)` is true.
  template <typename Missing>
  void check(const Missing& missing) const {
    check_own();
    for (int other = 0; other < size(); ++other) {
      if (other == rank_ || !missing(other)) {
        continue;
      }
      // The rank may have finished its part before it ended.
      if (const auto reason = gone(other); reason && missing(other)) {
        fail(*reason);
      }
    }
  }
  /// True once a rank has left without a failure.
  bool has_left(int rank) const {
    return segment_->state(rank).membership.load() == Membership::kLeft;
  }
  /// The reason why a rank will not answer, if any.
  std::optional<std::string> gone(int rank) const;

  /// True if `missing(rank)` is false for all other ranks.
  template <typename Missing>
  bool has_all(const Missing& missing) const {
    for (int other = 0; other < size(); ++other) {
      if (other != rank_ && missing(other)) {
        return false;
      }
    }
    return true;
  }
  /// Waits until done(). Throws at the deadline, and as check().
  template <typename Missing>
  void wait(const Missing& missing, const Deadline& deadline) {
    const auto ready = [&] { return has_all(missing); };
    if (spin(ready)) {
      return;
    }
    while (true) {
      const uint32_t heard = bell();
      if (ready()) {
        return;
      }
      sleep(heard, kLook);
      check(missing);
      if (Clock::now() >= deadline.end && !ready()) {
        std::vector<int> late;
        for (int other = 0; other < size(); ++other) {
          if (other != rank_ && missing(other)) {
            late.push_back(other);
          }
        }
        fail_late(late, deadline);
      }
    }
  }

  /// Spins for less time than sleeping and waking takes.
  template <typename Ready>
  bool spin(const Ready& ready) {
    return patience_.spin(ready);
  }

  [[noreturn]] static void fail(const std::string& why);
  [[noreturn]] void fail_late(
      const std::vector<int>& ranks,
      const Deadline& deadline) const;

  /// The interval at which a sleeping thread checks the other ranks.
  static constexpr Milliseconds kLook{50};

 private:
  void check_own() const;
  RankState& own() const {
    return segment_->state(rank_);
  }

  std::unique_ptr<Segment> segment_;
  int rank_;
  std::vector<std::shared_ptr<const Process>> processes_;
  std::mutex leaving_;
  Patience patience_{std::chrono::microseconds(15), 4, 16};
};

} // namespace openreg::distributed
