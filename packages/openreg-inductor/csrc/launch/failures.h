// SPDX-License-Identifier: BSD-3-Clause
// The exceptions of a generated kernel's iterations. This text is copied into
// each kernel that may refuse values.
#pragma once

#include <atomic>
#include <exception>

namespace openreg::inductor {

/// Keeps the first exception; for all threads of one kernel.
class Failures {
 public:
  /// Must be called in a handler.
  void keep() noexcept {
    if (!any_.exchange(true, std::memory_order_relaxed)) {
      first_ = std::current_exception();
    }
  }
  /// Must be called after the threads have finished.
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
