// SPDX-License-Identifier: BSD-3-Clause
// Copies of the library among the mappings of the process.
#include "platform/library.h"

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string_view>

namespace openreg::platform {
namespace {

constexpr std::string_view kLibrary = "libopenreg.so";

} // namespace

Copies find_copies() {
  const auto here = reinterpret_cast<std::uintptr_t>(&find_copies);
  // The system's names of memory files.
  const std::set<std::string> devices = {
      std::string("/memfd:") + kDeviceFile + " (deleted)",
      std::string("/memfd:") + kDeviceReservation + " (deleted)"};
  Copies result;
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
      result.own = path;
    }
    result.in_use |= devices.contains(path);
    const std::string_view name =
        std::string_view(path).substr(path.rfind('/') + 1);
    if (name.starts_with(kLibrary)) {
      result.others.insert(path);
    }
  }
  result.others.erase(result.own);
  return result;
}

} // namespace openreg::platform
