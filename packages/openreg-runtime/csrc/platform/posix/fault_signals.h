// SPDX-License-Identifier: BSD-3-Clause
// The signals of faults.
#pragma once

#include <span>

namespace openreg::platform {

/// At most two signals.
std::span<const int> fault_signals() noexcept;

} // namespace openreg::platform
