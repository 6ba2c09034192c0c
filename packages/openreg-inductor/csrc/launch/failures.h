// SPDX-License-Identifier: BSD-3-Clause
// What the iterations of a generated kernel have thrown. The text becomes a
// part of each kernel that may refuse values.
#pragma once

#include <atomic>
#include <exception>

namespace openreg::inductor {

/// Keeps the first exception; for all threads of one kernel.
class Failures {
 public:
  /// To be called in a handler.
  void keep() noexcept {
    if (!any_.exchange(true, std::memory_order_relaxed)) {
      first_ = std::current_exception();
    }
  }
  /// To be called when the threads are done.
  void rethrow() const {
    if (first_) {
      std::rethrow_exception(first_);
    }
  }

 private:
  std::atomic<bool> any_{false};
  std::exception_ptr first_;
};

} // namespace openreg::inductor
