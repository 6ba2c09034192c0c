// SPDX-License-Identifier: BSD-3-Clause
// Sleeps on a word of the shared memory, and checks the other ranks.
#include "transport/shared/peers.h"

#include "platform/wait.h"

#include <c10/util/Exception.h>

#include <cstring>

namespace openreg::distributed {

Peers::Peers(
    std::unique_ptr<Segment> segment,
    int rank,
    std::vector<std::shared_ptr<const Process>> processes)
    : segment_(std::move(segment)),
      rank_(rank),
      processes_(std::move(processes)) {}

Peers::~Peers() {
  leave(Membership::kLeft);
}

void Peers::leave(Membership membership, const std::string& why) {
  if (!segment_->is_mapped()) {
    return;
  }
  {
    const std::lock_guard lock(leaving_);
    RankState& state = own();
    if (state.membership.load() != Membership::kMember) {
      return;
    }
    std::strncpy(state.why.data(), why.c_str(), state.why.size() - 1);
    state.membership.store(membership);
  }
  ring(rank_);
  ring_others();
}

void Peers::ring(int rank) const {
  RankState& state = segment_->state(rank);
  // Pairs with sleep(): either sleep() sees the bell, or this call sees the
  // sleeper.
  state.bell.fetch_add(1, std::memory_order_seq_cst);
  if (state.sleepers.load(std::memory_order_seq_cst) != 0) {
    wake_all(state.bell);
  }
}

void Peers::ring_others() const {
  for (int other = 0; other < size(); ++other) {
    if (other != rank_) {
      ring(other);
    }
  }
}

void Peers::sleep(uint32_t heard, Milliseconds limit) const {
  RankState& state = own();
  state.sleepers.fetch_add(1, std::memory_order_seq_cst);
  wait_on(state.bell, heard, limit);
  state.sleepers.fetch_sub(1, std::memory_order_seq_cst);
}

std::optional<std::string> Peers::gone(int rank) const {
  const RankState& state = segment_->state(rank);
  switch (state.membership.load()) {
    case Membership::kMember:
      break;
    case Membership::kFailed:
      return c10::str("rank ", rank, " has failed: ", state.why.data());
    case Membership::kLeft:
      return c10::str("rank ", rank, " has left the group");
  }
  const auto& process = processes_.at(static_cast<size_t>(rank));
  if (process->has_ended()) {
    return c10::str(
        "the process of rank ", rank, " (", process->number(), ") has ended");
  }
  return std::nullopt;
}

void Peers::check_own() const {
  switch (own().membership.load()) {
    case Membership::kMember:
      break;
    case Membership::kFailed:
      fail(c10::str("the group has failed: ", own().why.data()));
    case Membership::kLeft:
      fail("the group was aborted");
  }
}

void Peers::fail(const std::string& why) {
  C10_THROW_ERROR(DistBackendError, why);
}

void Peers::fail_late(const std::vector<int>& ranks, const Deadline& deadline)
    const {
  std::string names;
  for (const int each : ranks) {
    names += (names.empty() ? "" : ", ") + std::to_string(each);
  }
  fail(
      c10::str(
          "timed out after ",
          deadline.limit.count(),
          " ms, waiting for rank ",
          names));
}

} // namespace openreg::distributed
