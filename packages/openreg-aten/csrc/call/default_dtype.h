// SPDX-License-Identifier: BSD-3-Clause
// Runs an enqueued operator with the default dtype of its call.
#pragma once

#include "results/kernel_run.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace openreg::aten {

/// Converts integral arguments of a pointwise operator whose result was
/// predicted to have `dtype`, the default dtype at the call, so that the kernel
/// promotes to `dtype`. Call it if the default dtype has changed since.
void apply_default_dtype(
    const c10::OperatorHandle& op,
    c10::ScalarType dtype,
    const ResultPlaces& results,
    torch::jit::Stack& arguments);

} // namespace openreg::aten
