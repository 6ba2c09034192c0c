// SPDX-License-Identifier: BSD-3-Clause
// Operators with typed kernels. All others run boxed, with the same results.
#include "base/keys.h"
#include "base/mechanism.h"
#include "ops/typed/families.h"

namespace openreg::aten {

OPENREG_MECHANISM(
    typed,
    "TORCH_LIBRARY_IMPL: typed kernels",
    "frequently called operators are slower") {
  static auto library = OPENREG_LIBRARY_IMPL(aten, kDenseKey);
  add_typed_pointwise(library);
  add_typed_layers(library);
  add_typed_images(library);
  add_typed_reductions(library);
  add_typed_linear_algebra(library);
  add_typed_data(library);
  add_typed_optimizers(library);
}

} // namespace openreg::aten
