// SPDX-License-Identifier: BSD-3-Clause
// Optimizer steps.
#include "ops/typed/add_operators.h"
#include "ops/typed/families.h"

namespace openreg::aten {

void add_typed_optimizers(torch::Library& library) {
  namespace ops = at::_ops;
  // On lists of tensors.
  add_typed_operators<
      ops::_foreach_add__Scalar,
      ops::_foreach_add__List,
      ops::_foreach_mul__Scalar,
      ops::_foreach_lerp__Scalar,
      ops::_foreach_addcmul__Scalar,
      ops::_foreach_addcdiv__ScalarList,
      ops::_foreach_addcdiv__Scalar,
      ops::_foreach_sqrt,
      ops::_foreach_div__ScalarList,
      ops::_foreach_div__Scalar>(library);
  // Fused.
  add_typed_operators<ops::_fused_adam_, ops::_fused_adamw_, ops::_fused_sgd_>(
      library);
}

} // namespace openreg::aten
