// SPDX-License-Identifier: BSD-3-Clause
// The memory of the machine, which limits the default memory of the devices.
#pragma once

#include <cstdint>
#include <filesystem>

namespace openreg {

/// Returns the bytes that this process may use: the memory of the machine, or
/// the lowest limit of its control groups (cgroups). Tests pass another `root`
/// of the file system.
std::uint64_t machine_memory(const std::filesystem::path& root = "/");

} // namespace openreg
