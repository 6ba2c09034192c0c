// SPDX-License-Identifier: BSD-3-Clause
// Cleans up at the end of the process.
#pragma once

#include "base/export.h"

namespace openreg::aten {

/// Blocks for at most 2 s until the device threads of autograd have released
/// the objects of earlier backward passes. Call it without the GIL, before the
/// interpreter ends: these threads may need the GIL to free a tensor, and
/// taking it later aborts the process.
OPENREG_ATEN_API void drain_autograd();

} // namespace openreg::aten
