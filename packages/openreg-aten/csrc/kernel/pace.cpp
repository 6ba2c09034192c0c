// SPDX-License-Identifier: BSD-3-Clause
// The mean of bytes and times of the latest kernels.
#include "kernel/pace.h"

#include "device/host_wait.h"
#include "device/settings.h"

#include <c10/macros/Macros.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <limits>

namespace openreg::aten::pace {
namespace {

int env(const char* n, int d) {
  const char* t = std::getenv(n);
  return t ? std::atoi(t) : d;
}

/// Operators with at most this many bytes of operands, in the mean over the
/// latest ones too, run on the calling thread if their stream is idle.
size_t inline_bytes() {
  static const size_t value = inline_bytes_setting();
  return value;
}

constexpr int kSampled = 8; // one kernel of so many is measured
constexpr int kWindow = 16; // in a mean, each new one counts one of so many
constexpr int kLongest =
    32'000; // ns: a kernel that was interrupted counts as this

// The mean time of kernels, in nanoseconds.
std::atomic<int> g_kernel_time{0};

struct Thread {
  size_t mean_bytes;
  uint32_t host_waits; // when the last operator was submitted
  uint32_t operators;  // since then
  uint32_t mean_operators; // between waits
  uint32_t ticks;      // to the next sample
};
OPENREG_THREAD_LOCAL Thread t_thread{};

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

} // namespace

bool is_worth_enqueueing(size_t bytes) {
  static const uint32_t kFirst = env("X_FIRST", 4);
  static const int kWorth = env("X_WORTH", 1500);
  const size_t limit = inline_bytes();
  Thread& thread = t_thread;
  thread.mean_bytes += bytes / kWindow - thread.mean_bytes / kWindow;
  if (thread.host_waits != t_host_waits) {
    thread.host_waits = t_host_waits;
    thread.mean_operators = (3 * thread.mean_operators + thread.operators) / 4;
    thread.operators = 0;
  }
  if (bytes > limit || thread.mean_bytes > limit) {
    return true;
  }
  static const uint32_t kBurst = env("X_BURST", 16);
  ++thread.operators;
  return thread.operators > kFirst && (thread.mean_operators >= kBurst || thread.operators >= kBurst) &&
      g_kernel_time.load(std::memory_order_relaxed) > kWorth &&
      limit != std::numeric_limits<size_t>::max();
}

Timer::Timer() : start_(0) {
  if (t_thread.ticks-- == 0) {
    t_thread.ticks = kSampled - 1;
    start_ = now();
  }
}

Timer::~Timer() {
  if (C10_UNLIKELY(start_ != 0)) {
    const int time =
        static_cast<int>(std::min<int64_t>(now() - start_, kLongest));
    const int mean = g_kernel_time.load(std::memory_order_relaxed);
    g_kernel_time.store(
        mean + (time - mean) / kWindow, std::memory_order_relaxed);
  }
}

} // namespace openreg::aten::pace
