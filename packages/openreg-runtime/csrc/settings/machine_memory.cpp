// SPDX-License-Identifier: BSD-3-Clause
// Reads the limits of both versions of control groups. A container limits its
// memory with them.
#include "settings/machine_memory.h"

#include "platform/machine.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace openreg {
namespace {

constexpr std::uint64_t kNoLimit = UINT64_MAX;

/// Returns kNoLimit if the file does not exist or contains no number.
std::uint64_t limit_in(const std::string& file) {
  std::ifstream stream(file);
  std::uint64_t limit = 0;
  return stream >> limit ? limit : kNoLimit;
}

/// Returns the lowest limit of a group, such as "/system.slice/a.service", and
/// of the groups that contain it.
std::uint64_t limit_of(
    const std::string& hierarchy,
    std::string group,
    const std::string& file) {
  std::uint64_t limit = limit_in(hierarchy + "/" + file);
  while (!group.empty()) {
    std::string path = hierarchy;
    path.append("/").append(group).append("/").append(file);
    limit = std::min(limit, limit_in(path));
    const std::size_t end = group.rfind('/');
    group.resize(end == std::string::npos ? 0 : end);
  }
  return limit;
}

} // namespace

std::uint64_t machine_memory(const std::string& root) {
  const std::string groups = root + "/sys/fs/cgroup";
  std::uint64_t limit = platform::physical_memory();
  std::ifstream memberships(root + "/proc/self/cgroup");
  // A line is "number:controllers:group". Version 2 has no controllers.
  for (std::string line; std::getline(memberships, line);) {
    std::istringstream stream(line);
    std::string controllers;
    std::string group;
    std::getline(stream, controllers, ':'); // the number
    std::getline(stream, controllers, ':');
    std::getline(stream, group);
    if (controllers.empty()) {
      limit = std::min(limit, limit_of(groups, group, "memory.max"));
    } else if (
        ("," + controllers + ",").find(",memory,") != std::string::npos) {
      limit = std::min(
          limit, limit_of(groups + "/memory", group, "memory.limit_in_bytes"));
    }
  }
  return limit;
}

} // namespace openreg
