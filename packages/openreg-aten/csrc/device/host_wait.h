// SPDX-License-Identifier: BSD-3-Clause
// How often a thread has waited for a device.
#pragma once

#include "thread_local.h"

#include <cstdint>

namespace openreg::aten {

/// Changes whenever this thread waits for work of a device.
inline OPENREG_THREAD_LOCAL uint32_t t_host_waits = 0;

} // namespace openreg::aten
