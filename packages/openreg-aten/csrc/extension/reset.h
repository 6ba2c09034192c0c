// SPDX-License-Identifier: BSD-3-Clause
// Resets a device, also after it was lost.
#pragma once

#include "base/export.h"

#include <c10/core/Device.h>

namespace openreg::aten {

/// Discards the pending work, the streams and the memory of `device`. Existing
/// tensors lose their data. They can be freed, and their addresses are not
/// reused until then.
OPENREG_ATEN_API void reset_device(c10::DeviceIndex device);

} // namespace openreg::aten
