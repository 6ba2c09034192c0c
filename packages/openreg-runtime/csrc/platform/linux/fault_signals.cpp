// SPDX-License-Identifier: BSD-3-Clause
// Linux sends SIGSEGV for pages without access.
#include "platform/posix/fault_signals.h"

#include <array>
#include <csignal>

namespace openreg::platform {

std::span<const int> fault_signals() noexcept {
  static constexpr std::array kSignals{SIGSEGV};
  return kSignals;
}

} // namespace openreg::platform
