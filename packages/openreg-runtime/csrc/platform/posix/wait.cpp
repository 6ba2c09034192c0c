// SPDX-License-Identifier: BSD-3-Clause
// Waits by polling, because POSIX has no wait on a word of shared memory that
// survives the end of another process.
#include "platform/wait.h"

#include <algorithm>
#include <thread>

namespace openreg::platform {
namespace {

using namespace std::chrono_literals;
constexpr std::chrono::nanoseconds kFirstPause = 10us;
constexpr std::chrono::nanoseconds kLongestPause = 500us;

} // namespace

void wait_on(
    std::atomic<std::uint32_t>& word,
    std::uint32_t value,
    std::chrono::nanoseconds most) noexcept {
  const auto end = std::chrono::steady_clock::now() + most;
  for (auto pause = kFirstPause;
       word.load(std::memory_order_seq_cst) == value &&
       std::chrono::steady_clock::now() < end;
       pause = std::min(pause * 2, kLongestPause)) {
    std::this_thread::sleep_for(pause);
  }
}

void wake_one(std::atomic<std::uint32_t>&) noexcept {}

void wake_all(std::atomic<std::uint32_t>&) noexcept {}

} // namespace openreg::platform
