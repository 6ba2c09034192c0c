// SPDX-License-Identifier: BSD-3-Clause
// A wait for a device that leaves failures to the program.
#pragma once

#include "base/export.h"

#include <c10/core/Device.h>

namespace openreg::aten {

/// Waits for the default stream and the pool streams of a device. Throws a
/// failure of their work, which stays on its stream: synchronize_device() would
/// take it from the program.
OPENREG_ATEN_API void wait_for_all_streams(c10::DeviceIndex device);

} // namespace openreg::aten
