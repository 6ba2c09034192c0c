// SPDX-License-Identifier: BSD-3-Clause
// Refuses another copy that has devices.
#include "memory/other_copy.h"

#include "base/error.h"
#include "platform/library.h"

#include <string>

namespace openreg {

void check_no_other_copy() {
  const platform::Copies found = platform::find_copies();
  if (!found.in_use) {
    return;
  }
  std::string others;
  for (const std::string& path : found.others) {
    others.append(others.empty() ? "" : ", ").append(path);
  }
  if (others.empty()) { // loaded into another namespace, or unloaded
    others = "the file itself, loaded a second time, or one that was unloaded";
  }
  throw Failure(
      orErrorNotSupported,
      "another copy of libopenreg uses the devices of this process: " + others +
          "; this copy is " + found.own +
          ". They cannot share pointers, streams and events: load the same "
          "file everywhere in the process, or set OPENREG_ALLOW_COPIES=1 if "
          "the copies share nothing");
}

} // namespace openreg
