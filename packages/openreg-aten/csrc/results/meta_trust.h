// SPDX-License-Identifier: BSD-3-Clause
// Which calls meta kernels are asked about.
#pragma once

#include "facts/operator_info.h"
#include "results/output_metadata.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace openreg::aten {

/// Whether the meta kernel of `op` says of the arguments on `stack` what the
/// CPU's kernel makes of them, and refuses what that refuses.
bool trusts_meta_kernel(
    const c10::OperatorHandle& op,
    const OperatorInfo& info,
    const CallKey& key,
    const torch::jit::Stack& stack);

/// Whether the strides of all tensors on `stack` follow from their sizes.
bool have_default_strides(const torch::jit::Stack& stack);

} // namespace openreg::aten
