// SPDX-License-Identifier: BSD-3-Clause
// The memory of the machine, which limits the default memory of the devices.
#pragma once

#include <cstdint>
#include <string>

namespace openreg {

/// Returns the bytes that this process may use: the memory of the machine, or
/// the lowest limit of its control groups (cgroups). Tests pass another `root`
/// of the file system. std::filesystem needs libstdc++ 9.
std::uint64_t machine_memory(const std::string& root = "");

} // namespace openreg
