// SPDX-License-Identifier: BSD-3-Clause
// An observer of C API calls: none, or the activity recorder.
#pragma once

#include <openreg/openreg.h>

#include <atomic>
#include <cstdint>

namespace openreg {

/// A running call.
struct ApiCall {
  const char* function;
  std::uint64_t number = 0; // 0: not seen
  std::uint64_t outer = 0;  // the call of this thread that it is a part of
  std::uint64_t started = 0;
};

struct ApiObserver {
  void (*begin)(ApiCall& call) noexcept;
  void (*end)(const ApiCall& call, orError_t error) noexcept;
};

inline std::atomic<const ApiObserver*> g_api_observer{nullptr};

/// Reports the begin and the end of a call to the observer, if there is one.
class ApiCallScope {
 public:
  explicit ApiCallScope(const char* function) noexcept
      : observer_(g_api_observer.load(std::memory_order_relaxed)) {
    if (observer_ != nullptr) [[unlikely]] {
      call_.function = function;
      observer_->begin(call_);
    }
  }
  ApiCallScope(const ApiCallScope&) = delete;
  ApiCallScope& operator=(const ApiCallScope&) = delete;

  orError_t end(orError_t error) const noexcept {
    if (observer_ != nullptr) [[unlikely]] {
      observer_->end(call_, error);
    }
    return error;
  }

 private:
  const ApiObserver* const observer_;
  ApiCall call_; // set only if there is an observer
};

} // namespace openreg
