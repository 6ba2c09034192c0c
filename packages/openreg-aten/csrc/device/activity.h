// SPDX-License-Identifier: BSD-3-Clause
// Describes launches for the activity records of the runtime.
#pragma once

#include <openreg/activity.h>

#include <ATen/record_function.h>

#include <cstddef>

namespace openreg::aten {

namespace detail {
extern const unsigned int* const recorded_kinds;
} // namespace detail

/// Whether activity is recorded. This check is the only cost while it is not.
inline bool records_activity() noexcept {
  return C10_UNLIKELY(
      __atomic_load_n(detail::recorded_kinds, __ATOMIC_RELAXED) != 0);
}

/// Describes the launch of an operator: the innermost LaunchDescription, or a
/// kernel named `name` with `bytes` bytes of operands. `name` must never be
/// freed.
orLaunchInfo describe_launch(const char* name, std::size_t bytes) noexcept;

/// Describes all launches of this thread while it exists.
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

/// Hides the operators that a kernel calls from PyTorch's profiler. On the
/// device they are a single kernel.
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
