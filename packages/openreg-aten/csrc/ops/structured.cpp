// SPDX-License-Identifier: BSD-3-Clause
// Pointwise operators, which run the CPU kernels directly under PyTorch's
// iterator.
#include "base/keys.h"
#include "base/mechanism.h"
#include "ops/structured/families.h"

namespace openreg::aten {

OPENREG_MECHANISM(
    structured,
    "TORCH_LIBRARY_IMPL: structured kernels",
    "pointwise operators on small tensors are slower") {
  static auto library = OPENREG_LIBRARY_IMPL(aten, kDenseKey);
  add_structured_unary(library);
  add_structured_binary(library);
  add_structured_special(library);
  add_structured_activations(library);
}

} // namespace openreg::aten
