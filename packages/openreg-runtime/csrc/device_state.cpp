// SPDX-License-Identifier: BSD-3-Clause
// The failure of a device.
#include "device_state.h"

#include <utility>

namespace openreg {

std::optional<Error> DeviceState::failure() const {
  const std::lock_guard lock(mutex_);
  return failed_ ? std::optional(error_) : std::nullopt;
}

void DeviceState::fail(Error error) {
  const std::lock_guard lock(mutex_);
  if (!failed_) {
    error_ = std::move(error);
    failed_.store(true, std::memory_order_release);
  }
}

void DeviceState::recover() {
  const std::lock_guard lock(mutex_);
  resets_.fetch_add(1, std::memory_order_release);
  failed_.store(false, std::memory_order_release);
}

void DeviceState::check_since(std::uint64_t resets) const {
  if (check() != resets) {
    throw Failure(
        orErrorDeviceLost, "the device was reset while the call waited");
  }
}

void DeviceState::rethrow() const {
  const std::lock_guard lock(mutex_);
  throw Failure(error_);
}

} // namespace openreg
