// SPDX-License-Identifier: BSD-3-Clause
// Kernels on caller streams that wait for other ranks. They end with their
// group, and with the process.
#pragma once

#include "occl/work.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace openreg::distributed {

class Pending {
 public:
  /// Enqueues `run` as a kernel of this name. It must check reason() while it
  /// waits.
  void enqueue(
      const c10::Stream& stream,
      const char* name,
      std::function<void()> run);
  /// Returns whether all kernels have ended by then.
  bool wait_until(std::chrono::steady_clock::time_point end);
  /// Ends waiting kernels with an error.
  void abort() {
    aborted_ = true;
  }
  /// The reason why kernels must stop waiting, or null.
  const char* reason() const;
  /// Aborts all groups when the program ends.
  static void abort_all();

 private:
  std::atomic<bool> aborted_ = false;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Outcome>> outcomes_; // some have ended
};

} // namespace openreg::distributed
