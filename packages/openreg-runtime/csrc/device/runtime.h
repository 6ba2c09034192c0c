// SPDX-License-Identifier: BSD-3-Clause
// The devices of this process.
#pragma once

#include "device/device.h"
#include "memory/address_space.h"

#include <memory>
#include <vector>

namespace openreg {

class Runtime {
 public:
  Runtime();

  int device_count() const noexcept {
    return static_cast<int>(devices_.size());
  }
  /// Throws orErrorInvalidDevice.
  Device& device(int index);
  AddressSpace& memory() noexcept {
    return memory_;
  }
  /// Waits for all work of all devices like Device::drain().
  void drain();
  /// Whether no stream has work.
  bool idle();
  /// Waits until no command runs, at most until `deadline`.
  void settle(Point::Clock::time_point deadline);
  /// Drops queued commands at exit.
  void abandon();

 private:
  AddressSpace memory_;
  std::vector<std::unique_ptr<Device>> devices_;
};

/// The devices, created at the first call. Throws Failure.
Runtime& runtime();

} // namespace openreg
