// SPDX-License-Identifier: BSD-3-Clause
// The end of the process.
#pragma once

#include "base/export.h"

namespace openreg::aten {

/// Waits, at most 2 s, until autograd's device threads have let go of what
/// earlier backward passes used. To be called without the GIL, before the
/// interpreter ends: such a thread may still need the GIL to drop a tensor, and
/// asking for it later aborts the process.
OPENREG_ATEN_API void drain_autograd();

} // namespace openreg::aten
