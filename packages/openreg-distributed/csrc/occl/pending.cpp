// SPDX-License-Identifier: BSD-3-Clause
// A list of outcomes, and abort flags of the group and of the process.
#include "occl/pending.h"

#include <algorithm>
#include <utility>

namespace openreg::distributed {
namespace {

std::atomic<bool> g_program_ends = false;

} // namespace

void Pending::enqueue(
    const c10::Stream& stream,
    const char* name,
    std::function<void()> run) {
  auto outcome = std::make_shared<Outcome>();
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(
        outcomes_, [](const auto& each) { return each->is_finished(); });
    outcomes_.push_back(outcome);
  }
  try {
    launch(
        stream,
        std::move(run),
        [outcome] { outcome->finish(nullptr); },
        describe_call(name, /*bytes=*/0));
  } catch (...) {
    outcome->finish(nullptr);
    throw;
  }
}

bool Pending::wait_until(std::chrono::steady_clock::time_point end) {
  std::vector<std::shared_ptr<Outcome>> outcomes;
  {
    const std::lock_guard lock(mutex_);
    outcomes = outcomes_;
  }
  return std::all_of(outcomes.begin(), outcomes.end(), [&](const auto& each) {
    using std::chrono::milliseconds;
    const auto left = std::chrono::duration_cast<milliseconds>(
        end - std::chrono::steady_clock::now());
    return each->wait(std::max(left, milliseconds(1))); // 0: no limit
  });
}

const char* Pending::reason() const {
  if (g_program_ends) {
    return "the program ends";
  }
  return aborted_ ? "the group was aborted or destroyed" : nullptr;
}

void Pending::abort_all() {
  g_program_ends = true;
}

} // namespace openreg::distributed
