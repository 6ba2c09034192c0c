// SPDX-License-Identifier: BSD-3-Clause
// A device as new, also after it was lost.
#pragma once

#include "base/export.h"

#include <c10/core/Device.h>

namespace openreg::aten {

/// Ends what the device runs, its streams and its memory. Tensors that are
/// there have no data any more; they can be freed, and nothing else gets their
/// addresses until they are.
OPENREG_ATEN_API void reset_device(c10::DeviceIndex device);

} // namespace openreg::aten
