// SPDX-License-Identifier: BSD-3-Clause
// What waits for other ranks on streams of the caller. It ends with its group,
// and with the process.
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
  /// Enqueues `run`, which looks at reason() while it waits, as a kernel of
  /// this name.
  void enqueue(
      const c10::Stream& stream,
      const char* name,
      std::function<void()> run);
  /// Returns whether all of it has ended by then.
  bool wait_until(std::chrono::steady_clock::time_point end);
  /// Ends what waits, with an error.
  void abort() {
    aborted_ = true;
  }
  /// Why nothing may wait any longer; null while it may.
  const char* reason() const;
  /// For all groups, when the program ends.
  static void abort_all();

 private:
  std::atomic<bool> aborted_ = false;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Outcome>> outcomes_; // some have ended
};

} // namespace openreg::distributed
