// SPDX-License-Identifier: BSD-3-Clause
// What the runtime's records of activity say of launches.
#pragma once

#include <openreg/activity.h>

#include <ATen/record_function.h>

#include <cstddef>

namespace openreg::aten {

namespace detail {
extern const unsigned int* const recorded_kinds;
} // namespace detail

/// Whether activity is recorded; the one thing that costs while it is not.
inline bool records_activity() noexcept {
  return C10_UNLIKELY(
      __atomic_load_n(detail::recorded_kinds, __ATOMIC_RELAXED) != 0);
}

/// What a launch of an operator is: the innermost LaunchDescription, or a
/// kernel of this name, which stays valid for good, and so many bytes of
/// operands.
orLaunchInfo describe_launch(const char* name, std::size_t bytes) noexcept;

/// While one lives, what this thread launches is what it says.
class LaunchDescription {
 public:
  explicit LaunchDescription(const orLaunchInfo& info) noexcept;
  LaunchDescription(const LaunchDescription&) = delete;
  LaunchDescription& operator=(const LaunchDescription&) = delete;
  ~LaunchDescription();

 private:
  const orLaunchInfo info_;
  const orLaunchInfo* const outer_;
};

/// While one lives in a kernel, PyTorch's profiler does not see the operators
/// that the kernel is made of: on the device they are one.
class KernelOperators {
 public:
  KernelOperators()
      : hides_(records_activity() && at::isRecordFunctionEnabled()) {
    if (hides_) {
      at::enableRecordFunction(false);
    }
  }
  KernelOperators(const KernelOperators&) = delete;
  KernelOperators& operator=(const KernelOperators&) = delete;
  ~KernelOperators() {
    if (hides_) {
      at::enableRecordFunction(true);
    }
  }

 private:
  const bool hides_;
};

} // namespace openreg::aten
