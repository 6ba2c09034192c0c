// SPDX-License-Identifier: BSD-3-Clause
// Settings of this library, which the runtime reads, validates and lists.
#pragma once

#include "base/export.h"

#include <cstddef>

namespace openreg::aten {

/// Registers the settings of this library with the runtime.
OPENREG_ATEN_API void register_settings();

/// Returns the maximum bytes of operands with which an operator may run inline:
/// OPENREG_INLINE_BYTES, or no limit with OPENREG_LAUNCH_BLOCKING=1. Throws if
/// either value is invalid.
size_t inline_bytes_setting();

/// Whether OPENREG_ISOLATION is thread. Throws if the value is invalid.
bool is_thread_setting();

/// Returns OPENREG_ENQUEUE_BURSTS. Throws if the value is invalid.
bool enqueue_bursts_setting();

/// Returns OPENREG_HALF_IN_FLOAT32. Throws if the value is invalid.
bool half_in_float32_setting();

/// Returns OPENREG_CUDA_LIMITS. Throws if the value is invalid.
OPENREG_ATEN_API bool cuda_limits_setting();

} // namespace openreg::aten
