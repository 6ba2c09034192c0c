// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/stack.h>

namespace torch_minimal {

/// Runs an operator on the CPU, with copies of its arguments and results.
void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack);

} // namespace torch_minimal
