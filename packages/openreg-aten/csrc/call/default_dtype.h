// SPDX-License-Identifier: BSD-3-Clause
// Runs an enqueued operator with the default dtype of its call.
#pragma once

#include "results/kernel_run.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace openreg::aten {

/// Whether the results of a pointwise operator have the default dtype because
/// no argument determines another one, as in a division of integers.
bool has_default_dtype(
    const c10::OperatorHandle& op,
    const ResultPlaces& results,
    const torch::jit::Stack& arguments);

/// Converts the arguments of such an operator to `dtype`, the default dtype of
/// its call, so that the kernel computes in it whatever the default is then.
void apply_default_dtype(
    const c10::OperatorHandle& op,
    c10::ScalarType dtype,
    torch::jit::Stack& arguments);

} // namespace openreg::aten
