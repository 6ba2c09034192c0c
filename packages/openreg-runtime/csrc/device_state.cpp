// SPDX-License-Identifier: BSD-3-Clause
// The failure of a device.
#include "device_state.h"

#include <utility>

namespace openreg {

std::optional<Error> DeviceState::failure_since(Epoch epoch) const {
  if (usable_since(epoch)) {
    return std::nullopt;
  }
  const std::lock_guard lock(mutex_);
  return failed()
      ? error_
      : Error{orErrorDeviceLost, "the device was reset while the call waited"};
}

void DeviceState::fail(Error error) {
  const std::lock_guard lock(mutex_);
  if (!failed()) {
    error_ = std::move(error);
    status_.fetch_add(1, std::memory_order_release);
  }
}

void DeviceState::fail_again(Error error) {
  const std::lock_guard lock(mutex_);
  error_ = std::move(error);
  if (!failed()) {
    status_.fetch_add(1, std::memory_order_release);
  }
}

void DeviceState::recover() {
  const std::lock_guard lock(mutex_);
  status_.fetch_add(1, std::memory_order_release);
}

void DeviceState::check_since(Epoch epoch) const {
  if (auto failure = failure_since(epoch)) {
    throw Failure(std::move(*failure));
  }
}

void DeviceState::rethrow() const {
  const std::lock_guard lock(mutex_);
  throw Failure(error_);
}

} // namespace openreg
