// SPDX-License-Identifier: BSD-3-Clause
// OPENREG_CUDA_LIMITS=1: rejects the calls that CUDA rejects.
#pragma once

#include "base/export.h"

namespace openreg::aten {

/// Registers checks over the kernels of the operators in cuda_limits.def. Call
/// it after all other registrations. A second call has no effect.
OPENREG_ATEN_API void enable_cuda_limits();

} // namespace openreg::aten
