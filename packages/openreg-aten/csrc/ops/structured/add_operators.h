// SPDX-License-Identifier: BSD-3-Clause
// Registers the structured kernels of an operator and its in-place variant.
#pragma once

#include "kernel/structured.h"

#include <ATen/NativeFunctions.h>
#include <ATen/Operators.h>
#include <torch/library.h>

namespace openreg::aten {

/// `Structured` is the class in at::native that the `Operators` of at::_ops
/// share.
template <typename Structured, typename... Operators>
void add_structured_operators(torch::Library& library) {
  const auto add = [&](const c10::OperatorHandle& op, auto kernel) {
    library.impl(toString(op.operator_name()).c_str(), kernel);
  };
  (add(TypedCall<Operators>::handle(),
       TORCH_FN((StructuredKernel<Operators, Structured>::run))),
   ...);
}

} // namespace openreg::aten

/// Adds operators of at::_ops to `library`. `kernel` is the name of their class
/// in at::native without `structured_`.
#define OPENREG_ADD(kernel, ...)                                          \
  add_structured_operators<at::native::structured_##kernel, __VA_ARGS__>( \
      library)
