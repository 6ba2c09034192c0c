// SPDX-License-Identifier: BSD-3-Clause
// The differences between the supported versions of torch.
#pragma once

#include <torch/headeronly/version.h>

// CUDA's rules with the policy fp32 that are in no list of autocast_mode.h.
#if TORCH_VERSION_MINOR < 14
#define OPENREG_FORALL_FP32_OF_CUDA(_)
#else
#define OPENREG_FORALL_FP32_OF_CUDA(_) _(linalg_matrix_sqrth)
#endif
