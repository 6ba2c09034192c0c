// SPDX-License-Identifier: BSD-3-Clause
// Means of the bytes and times of the latest kernels, and of how many of them
// come between two waits of the host.
#include "kernel/pace.h"

#include "device/cores.h"
#include "device/host_wait.h"
#include "device/settings.h"
#include "thread_local.h"

#include <c10/macros/Macros.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>

namespace openreg::aten::pace {
namespace {

// In a mean, each new value counts one of so many.
constexpr int kWindow = 16;
// One kernel of so many is measured.
constexpr uint32_t kSampled = 8;
// A kernel that was interrupted counts as this, in nanoseconds.
constexpr int64_t kLongest = 32'000;
// Kernels of less, in the mean, cost more to enqueue than to run.
constexpr int kWorthwhile = 2'000;
// A program that waits more often gains nothing from asynchrony, ...
constexpr uint32_t kBurst = 16;
// ... nor one that waits after the first.
constexpr uint32_t kFirst = 1;

// The mean time of kernels, in nanoseconds.
std::atomic<int> g_kernel_time{0};

struct Thread {
  size_t mean_bytes;
  uint32_t host_waits;     // when the last operator was submitted
  uint32_t operators;      // since then
  uint32_t mean_operators; // between waits
  uint32_t until_sample;
};
OPENREG_THREAD_LOCAL Thread t_thread{};

/// Operators with at most this many bytes of operands, in the mean over the
/// latest ones too, may run on the calling thread if their stream is idle.
size_t inline_bytes() {
  static const size_t value = inline_bytes_setting();
  return value;
}

bool enqueues_bursts() {
  static const bool value = enqueue_bursts_setting();
  return value;
}

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

} // namespace

bool is_blocking() {
  return inline_bytes() == std::numeric_limits<size_t>::max();
}

// [docs: pace]
bool is_worth_enqueueing(size_t bytes, bool may_raise) {
  const size_t limit = inline_bytes();
  Thread& thread = t_thread;
  thread.mean_bytes += bytes / kWindow - thread.mean_bytes / kWindow;
  if (thread.host_waits != t_host_waits) {
    thread.host_waits = t_host_waits;
    thread.mean_operators = (3 * thread.mean_operators + thread.operators) / 4;
    thread.operators = 0;
  }
  ++thread.operators;
  if (bytes > limit || thread.mean_bytes > limit) {
    return true;
  }
  return enqueues_bursts() && !may_raise &&
      g_kernel_time.load(std::memory_order_relaxed) > kWorthwhile &&
      thread.operators > kFirst &&
      std::max(thread.mean_operators, thread.operators) >= kBurst &&
      !cores_are_taken();
}
// [docs: end]

Timer::Timer() : start_(0) {
  if (C10_LIKELY(!enqueues_bursts())) {
    return; // nobody asks for the mean
  }
  Thread& thread = t_thread;
  if (thread.until_sample == 0) {
    thread.until_sample = kSampled;
    start_ = now();
  }
  --thread.until_sample;
}

Timer::~Timer() {
  if (C10_UNLIKELY(start_ != 0)) {
    const auto time = static_cast<int>(std::min(now() - start_, kLongest));
    const int mean = g_kernel_time.load(std::memory_order_relaxed);
    g_kernel_time.store(
        mean + (time - mean) / kWindow, std::memory_order_relaxed);
  }
}

} // namespace openreg::aten::pace
