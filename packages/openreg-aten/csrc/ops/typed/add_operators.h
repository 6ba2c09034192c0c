// SPDX-License-Identifier: BSD-3-Clause
// Registers the typed kernels of a list of operators.
#pragma once

#include "kernel/typed.h"

#include <ATen/Operators.h>
#include <torch/library.h>

namespace openreg::aten {

template <typename Operator>
void add_typed_operator(torch::Library& library) {
  using Kernel = TypedKernel<Operator>;
  TORCH_INTERNAL_ASSERT(Kernel::is_complete(), Operator::schema_str);
  const std::string name =
      toString(TypedCall<Operator>::handle().operator_name());
  library.impl(name.c_str(), TORCH_FN(Kernel::run));
}

/// `Operators` are operators of at::_ops.
template <typename... Operators>
void add_typed_operators(torch::Library& library) {
  (add_typed_operator<Operators>(library), ...);
}

} // namespace openreg::aten
