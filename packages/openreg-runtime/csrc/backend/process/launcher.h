// SPDX-License-Identifier: BSD-3-Clause
// Device processes: how they start, and how the host detects their end.
//
// One launcher per program loads the executor's libraries once and forks a
// process for each device. As their parent it is notified when one ends or is
// stopped, and reports that to the host.
#pragma once

#include "base/device_state.h"
#include "memory/address_space.h"
#include "platform/channel.h"
#include "platform/file.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace openreg {

/// Reports the command that the process of a device runs.
class CommandReporter {
 public:
  /// The name of a command, which stays valid, or null.
  virtual const char* running() const noexcept = 0;

 protected:
  ~CommandReporter() = default;
};

/// A device process, from its start to its end.
class DeviceProcess {
 public:
  DeviceProcess(
      int device,
      std::uint64_t number,
      platform::Channel control,
      DeviceState& state)
      : device_(device),
        number_(number),
        control_(std::move(control)),
        state_(state) {}
  DeviceProcess(const DeviceProcess&) = delete;
  DeviceProcess& operator=(const DeviceProcess&) = delete;

  int device() const noexcept {
    return device_;
  }
  std::uint64_t number() const noexcept {
    return number_;
  }
  bool is_lost() const noexcept {
    return lost_.load(std::memory_order_acquire);
  }
  /// Throws orErrorDeviceLost, with the reason, if it is lost.
  void check() const {
    if (is_lost()) [[unlikely]] {
      rethrow();
    }
  }
  /// Gives the process the memory of a lane, which `running` serves.
  void attach(const platform::File& file, const CommandReporter& running);
  void detach(const CommandReporter& running);
  /// Notes that the process is gone; the first reason counts. `expected`: the
  /// device did not fail.
  void lose(const std::string& reason, bool expected);

 private:
  [[noreturn]] void rethrow() const;

  const int device_;
  const std::uint64_t number_;
  const platform::Channel control_;
  DeviceState& state_;
  std::atomic<bool> lost_{false};
  mutable std::mutex mutex_;
  std::string reason_;
  std::vector<const CommandReporter*> running_;
};

/// Starts a process for a device, and the launcher with the first one. Throws
/// orErrorNotSupported if no launcher is set, and orErrorUnknown.
std::shared_ptr<DeviceProcess> start_device_process(
    int device,
    const AddressSpace& memory,
    DeviceState& state);
/// Marks the process as lost for this reason and kills it.
void end_device_process(
    DeviceProcess& process,
    const std::string& reason,
    bool expected);

/// Sets the launcher's program and arguments. OPENREG_DEVICE_LAUNCHER overrides
/// them.
void set_launcher(std::vector<std::string> arguments);

} // namespace openreg
