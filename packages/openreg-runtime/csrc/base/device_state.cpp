// SPDX-License-Identifier: BSD-3-Clause
// The failure of a device.
#include "base/device_state.h"

#include <utility>

namespace openreg {

Error DeviceState::reason() const {
  const std::lock_guard lock(mutex_);
  if (failed()) {
    return error_;
  }
  return {orErrorDeviceLost, "the device was reset while the call waited"};
}

void DeviceState::fail(Error error) {
  const std::lock_guard lock(mutex_);
  if (!failed()) {
    error_ = std::move(error);
    number_error(error_);
    status_.fetch_add(1, std::memory_order_release);
  }
}

void DeviceState::fail_again(Error error) {
  const std::lock_guard lock(mutex_);
  error_ = std::move(error);
  number_error(error_);
  if (!failed()) {
    status_.fetch_add(1, std::memory_order_release);
  }
}

void DeviceState::recover() {
  const std::lock_guard lock(mutex_);
  status_.fetch_add(1, std::memory_order_release);
}

void DeviceState::rethrow() const {
  const std::lock_guard lock(mutex_);
  throw Failure(error_);
}

} // namespace openreg
