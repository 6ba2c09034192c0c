// SPDX-License-Identifier: BSD-3-Clause
// Loaded libraries, and copies of this one.
#pragma once

#include <set>
#include <string>

namespace openreg::platform {

/// The path of this library; empty if it cannot be determined.
std::string own_library();

struct Copies {
  bool in_use = false; // another copy in this process has devices
  std::string own;     // the file of this copy
  // Files of other copies that are loaded. May be incomplete.
  std::set<std::string> others;
};
/// Looks for other copies of this library in this process.
Copies find_copies();

/// The names of a device's file and of the addresses of all devices. On Linux,
/// another copy finds them.
inline constexpr const char* kDeviceFile = "openreg";
inline constexpr const char* kDeviceReservation = "openreg-reserved";

} // namespace openreg::platform
