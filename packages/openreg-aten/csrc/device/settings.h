// SPDX-License-Identifier: BSD-3-Clause
// The settings of this library, which the runtime reads, checks and lists.
#pragma once

#include "base/export.h"

#include <cstddef>

namespace openreg::aten {

/// Makes the settings of this library known to the runtime.
OPENREG_ATEN_API void register_settings();

/// The bytes of operands up to which an operator may run inline:
/// OPENREG_INLINE_BYTES, or no limit with OPENREG_LAUNCH_BLOCKING=1. Throws if
/// the value of either is wrong.
size_t inline_bytes_setting();

/// Whether OPENREG_ISOLATION is thread. Throws if the value is wrong.
bool is_thread_setting();

/// OPENREG_ENQUEUE_BURSTS. Throws if the value is wrong.
bool enqueue_bursts_setting();

/// OPENREG_HALF_IN_FLOAT32. Throws if the value is wrong.
bool half_in_float32_setting();

/// OPENREG_CUDA_LIMITS. Throws if the value is wrong.
OPENREG_ATEN_API bool cuda_limits_setting();

} // namespace openreg::aten
