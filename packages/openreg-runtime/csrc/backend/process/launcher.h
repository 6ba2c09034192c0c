// SPDX-License-Identifier: BSD-3-Clause
// The processes of devices: how they start, and how the host learns of their
// end.
//
// A launcher, one for the program, loads the libraries of the executor once and
// forks a process for each device. It is their parent, so the system tells it,
// and it tells us, when one ends or is stopped.
#pragma once

#include "base/device_state.h"
#include "memory/address_space.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
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

/// One process of a device, from its start to its end.
class DeviceProcess {
 public:
  DeviceProcess(
      int device,
      std::uint64_t number,
      int control,
      DeviceState& state)
      : device_(device), number_(number), control_(control), state_(state) {}
  DeviceProcess(const DeviceProcess&) = delete;
  DeviceProcess& operator=(const DeviceProcess&) = delete;
  ~DeviceProcess();

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
  void attach(int file, const CommandReporter& running);
  void detach(const CommandReporter& running);
  /// Notes that the process is gone; the first reason counts. `expected`: the
  /// device did not fail.
  void lose(const std::string& reason, bool expected);

 private:
  [[noreturn]] void rethrow() const;

  const int device_;
  const std::uint64_t number_;
  const int control_;
  DeviceState& state_;
  std::atomic<bool> lost_{false};
  mutable std::mutex mutex_;
  std::string reason_;
  std::vector<const CommandReporter*> running_;
};

/// Starts a process for a device. The launcher starts with the first one.
/// Throws orErrorNotSupported if the program has none, and orErrorUnknown.
std::shared_ptr<DeviceProcess> start_device_process(
    int device,
    const AddressSpace& memory,
    DeviceState& state);
/// Loses it for this reason, and kills it.
void end_device_process(
    DeviceProcess& process,
    const std::string& reason,
    bool expected);

/// What starts the launcher, unless OPENREG_DEVICE_LAUNCHER says it: a program
/// and its arguments.
void set_launcher(std::vector<std::string> arguments);

} // namespace openreg
