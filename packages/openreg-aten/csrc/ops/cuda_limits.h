// SPDX-License-Identifier: BSD-3-Clause
// OPENREG_CUDA_LIMITS=1: what CUDA refuses is refused.
#pragma once

#include "base/export.h"

namespace openreg::aten {

/// Registers, over the kernels of the operators in cuda_limits.def, kernels
/// that check first whether CUDA refuses the call. It comes after all other
/// registrations, and does nothing the second time.
OPENREG_ATEN_API void enable_cuda_limits();

} // namespace openreg::aten
