// SPDX-License-Identifier: BSD-3-Clause
// Waits for a word: spins, then sleeps, and checks the other process.
#include "symmetric/signals.h"

#include "base/patience.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

namespace openreg::distributed {
namespace {

// The other rank may need this core.
constexpr int kYields = 100;
constexpr std::chrono::microseconds kShortest{20};
constexpr std::chrono::microseconds kLongest{1000};

} // namespace

Signals::Signals(
    std::vector<uint32_t*> pads,
    size_t words,
    std::vector<std::shared_ptr<const Process>> processes,
    std::shared_ptr<const Pending> pending,
    int rank,
    std::string group)
    : pads_(std::move(pads)),
      words_(words),
      processes_(std::move(processes)),
      pending_(std::move(pending)),
      rank_(rank),
      group_(std::move(group)) {}

void Signals::check(const char* name, int channel) const {
  const auto channels = static_cast<int>(words_ / pads_.size());
  TORCH_CHECK(
      channel >= 0 && channel < channels,
      "SymmetricMemory: the channel of ",
      name,
      " is ",
      channel,
      ", but the signal pads have channels 0 to ",
      channels - 1,
      "; call set_signal_pad_size() before the allocation for more");
  const char* reason = pending_->reason();
  TORCH_CHECK(reason == nullptr, describe(name, channel), ": ", reason);
}

void Signals::check_rank(const char* name, int rank) const {
  TORCH_CHECK(
      rank >= 0 && rank < size(),
      "SymmetricMemory: the rank of ",
      name,
      " is ",
      rank,
      ", but the group has ",
      size(),
      " ranks");
}

std::string Signals::describe(const char* name, int channel) const {
  return c10::str(
      "SymmetricMemory: ",
      name,
      " on channel ",
      channel,
      " of group '",
      group_,
      "' on rank ",
      rank_,
      " of ",
      size());
}

uint32_t& Signals::word(int from, int to, int channel) const {
  return pads_[static_cast<size_t>(to)][size() * channel + from];
}

void Signals::exchange(
    const char* name,
    int from,
    int to,
    int channel,
    uint32_t before,
    Milliseconds limit) const {
  const std::atomic_ref<uint32_t> flag(word(from, to, channel));
  const auto begin = Clock::now();
  auto pause = kShortest;
  for (int tries = 0;; ++tries) {
    uint32_t expected = before;
    // Acquires the data that the other rank wrote before the signal.
    if (flag.compare_exchange_strong(
            expected, 1 - before, std::memory_order_acq_rel)) {
      return;
    }
    if (tries < kYields) {
      std::this_thread::yield();
      continue;
    }
    const int other = from == rank_ ? to : from;
    const char* reason = pending_->reason();
    TORCH_CHECK(reason == nullptr, describe(name, channel), ": ", reason);
    if (const auto& process = processes_[static_cast<size_t>(other)];
        process && process->has_ended()) {
      // The other rank may have signalled before its end.
      TORCH_CHECK(
          flag.load() == before,
          describe(name, channel),
          ": the process of rank ",
          other,
          " has ended");
      continue;
    }
    TORCH_CHECK(
        limit == Milliseconds::zero() || Clock::now() - begin < limit,
        describe(name, channel),
        " timed out after ",
        limit.count(),
        " ms: rank ",
        other,
        before == 0 ? " has not taken the signal before"
                    : " has not signalled");
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongest);
  }
}

void Signals::barrier(int channel, Milliseconds limit) const {
  for (int other = 0; other < size(); ++other) {
    if (other != rank_) {
      exchange("barrier", rank_, other, channel, 0, limit);
    }
  }
  for (int other = 0; other < size(); ++other) {
    if (other != rank_) {
      exchange("barrier", other, rank_, channel, 1, limit);
    }
  }
}

void Signals::put(int rank, int channel, Milliseconds limit) const {
  exchange("put_signal", rank_, rank, channel, 0, limit);
}

void Signals::wait(int rank, int channel, Milliseconds limit) const {
  exchange("wait_signal", rank, rank_, channel, 1, limit);
}

} // namespace openreg::distributed
