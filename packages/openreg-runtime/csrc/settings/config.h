// SPDX-License-Identifier: BSD-3-Clause
// The settings that the environment holds, read once at first use.
#pragma once

#include <openreg/openreg.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace openreg {

constexpr int kMaxDevices = 64;
constexpr std::uint64_t kMaxWaitTimeout = 86'400'000; // milliseconds: a day

struct Setting {
  std::string name;
  std::string value;
  std::string source;
  std::string description;
};

struct Config {
  int device_count = 2;
  std::size_t device_memory = std::size_t{16} << 30; // bytes, per device
  bool launch_blocking = false;
  bool peer_access = true;
  bool memory_check = false;
  bool allow_copies = false;      // of the library
  std::uint64_t wait_timeout = 0; // milliseconds, 0 for no limit
  std::vector<orFailureSpec> failures;
  std::vector<Setting> settings;
};

/// The configuration. Throws Failure, the same each time, if the environment
/// holds a wrong value.
const Config& config();

} // namespace openreg
