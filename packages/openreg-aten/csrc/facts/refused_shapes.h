// SPDX-License-Identifier: BSD-3-Clause
// Shapes and dimensions that the CPU's kernel of an operator refuses, and its
// meta kernel does not look at.
#pragma once

#include <ATen/core/stack.h>

#include <string>

namespace openreg::aten {

/// Whether the CPU's kernel refuses a call for its shapes although the meta
/// kernel does not. `name` is the operator's, without its overload.
bool has_refused_shapes(
    const std::string& name,
    const torch::jit::Stack& stack);

} // namespace openreg::aten
