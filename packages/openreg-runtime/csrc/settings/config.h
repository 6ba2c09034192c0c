// SPDX-License-Identifier: BSD-3-Clause
// The runtime's settings, read from the environment at first use.
#pragma once

#include "settings/schedule_name.h"
#include "settings/setting.h"

#include <openreg/openreg.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace openreg {

constexpr int kMaxDevices = 64;
constexpr std::uint64_t kMaxWaitTimeout = 86'400'000; // milliseconds: a day

struct Config {
  int device_count = 2;
  std::size_t device_memory = 0; // bytes, per device
  bool launch_blocking = false;
  bool in_process = true; // else each device has a separate process
  bool peer_access = true;
  bool memory_check = false;
  bool allow_copies = false;      // of the library
  std::uint64_t wait_timeout = 0; // milliseconds, 0 for no limit
  std::vector<orFailureSpec> failures;
  Schedule schedule;
  std::string device_launcher; // a command; empty: set by the program
  std::string device_log;      // a file; empty: standard error
  std::vector<Setting> settings;
};

/// The configuration. Always throws the same Failure if the environment has an
/// invalid value.
const Config& config();

/// True for a setting of the runtime; reads nothing.
bool is_configured(std::string_view name);

} // namespace openreg
