// SPDX-License-Identifier: BSD-3-Clause
// Device numbers: the current device, and range checks.
#pragma once

#include "base/error.h"
#include "base/thread_local.h"

#include <string>
#include <utility>

namespace openreg {

inline constinit OPENREG_THREAD_LOCAL int t_current_device = 0;

/// The current device of this thread.
inline int current_device() noexcept {
  return t_current_device;
}
/// Makes an existing device current; returns the previous one.
inline int exchange_current_device(int device) noexcept {
  return std::exchange(t_current_device, device);
}

/// Throws orErrorInvalidDevice unless 0 <= index < count.
inline void check_device(int index, int count) {
  if (index < 0 || index >= count) {
    throw Failure(
        orErrorInvalidDevice,
        "device " + std::to_string(index) +
            " does not exist: expected a number from 0 to " +
            std::to_string(count - 1) + " (OPENREG_DEVICE_COUNT is " +
            std::to_string(count) + ")");
  }
}

} // namespace openreg
