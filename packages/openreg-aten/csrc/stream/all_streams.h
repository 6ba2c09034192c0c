// SPDX-License-Identifier: BSD-3-Clause
// Waits for a device without taking its errors.
#pragma once

#include "base/export.h"

#include <c10/core/Device.h>

namespace openreg::aten {

/// Waits for the default stream and the pool streams of a device. Throws an
/// error of their work but leaves it on its stream. synchronize_device() would
/// clear it.
OPENREG_ATEN_API void wait_for_all_streams(c10::DeviceIndex device);

} // namespace openreg::aten
