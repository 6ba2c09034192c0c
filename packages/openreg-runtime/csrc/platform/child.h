// SPDX-License-Identifier: BSD-3-Clause
// A program that this process starts.
#pragma once

#include "platform/channel.h"
#include "platform/result.h"

#include <cstdint>
#include <string>
#include <vector>

namespace openreg::platform {

class Child {
 public:
  /// Starts a program, which is looked up as a shell does, with the further
  /// arguments `--socket NUMBER`: its end of a channel. Signals of the terminal
  /// do not reach it.
  static Result start(
      const std::vector<std::string>& arguments,
      const Channel& channel,
      Child& child);

  /// Waits for the end. Returns " by signal 9 (SIGKILL)", " with status 1" or
  /// ", and the program has waited for it".
  std::string wait() const;

 private:
  std::intptr_t process_ = 0; // a process number, or a HANDLE
};

/// "signal 9 (SIGKILL)"
std::string signal_text(int number);

} // namespace openreg::platform
