// SPDX-License-Identifier: BSD-3-Clause
// Looks for another copy among the mappings of the process.
#include "memory/other_copy.h"

#include "base/error.h"
#include "memory/address_space.h"

#include <cstdint>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

namespace openreg {
namespace {

constexpr std::string_view kLibrary = "libopenreg.so";

struct Mappings {
  bool devices = false;
  std::string own_file;
  std::set<std::string> libraries; // including this one
};

Mappings read_mappings() {
  const auto here = reinterpret_cast<std::uintptr_t>(&check_no_other_copy);
  // The system's names of the files that AddressSpace creates.
  const std::set<std::string> devices = {
      std::string("/memfd:") + AddressSpace::kFileName + " (deleted)",
      std::string("/memfd:") + AddressSpace::kReservedName + " (deleted)"};
  Mappings result;
  std::ifstream maps("/proc/self/maps");
  std::string line;
  while (std::getline(maps, line)) {
    // "begin-end access offset device inode   path"
    const auto slash = line.find('/');
    if (slash == std::string::npos) {
      continue;
    }
    const std::string path = line.substr(slash);
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    char dash = 0;
    std::istringstream(line) >> std::hex >> begin >> dash >> end;
    if (begin <= here && here < end) {
      result.own_file = path;
    }
    result.devices |= devices.contains(path);
    const std::string_view name =
        std::string_view(path).substr(path.rfind('/') + 1);
    if (name.starts_with(kLibrary)) {
      result.libraries.insert(path);
    }
  }
  return result;
}

} // namespace

void check_no_other_copy() {
  Mappings found = read_mappings();
  if (!found.devices) {
    return;
  }
  found.libraries.erase(found.own_file);
  std::string others;
  for (const std::string& path : found.libraries) {
    others.append(others.empty() ? "" : ", ").append(path);
  }
  if (others.empty()) { // loaded into another namespace, or unloaded
    others = "the file itself, loaded a second time, or one that was unloaded";
  }
  throw Failure(
      orErrorNotSupported,
      "another copy of libopenreg uses the devices of this process: " + others +
          "; this copy is " + found.own_file +
          ". They cannot share pointers, streams and events: load the same "
          "file everywhere in the process, or set OPENREG_ALLOW_COPIES=1 if "
          "the copies share nothing");
}

} // namespace openreg
