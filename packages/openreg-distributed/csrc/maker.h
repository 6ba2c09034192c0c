// SPDX-License-Identifier: BSD-3-Clause
// What a forked child inherits: objects without their threads and shared
// memory.
#pragma once

#include <sys/types.h>
#include <unistd.h>

namespace openreg::distributed {

/// The process that made the object that this is a member of.
class Maker {
 public:
  /// False in a forked child.
  bool is_this_process() const {
    return number_ == getpid();
  }

 private:
  pid_t number_ = getpid();
};

} // namespace openreg::distributed
