// SPDX-License-Identifier: BSD-3-Clause
// macOS sends SIGBUS for some pages without access.
#include "platform/posix/fault_signals.h"

#include <array>
#include <csignal>

namespace openreg::platform {

std::span<const int> fault_signals() noexcept {
  static constexpr std::array kSignals{SIGSEGV, SIGBUS};
  return kSignals;
}

} // namespace openreg::platform
