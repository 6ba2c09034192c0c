// SPDX-License-Identifier: BSD-3-Clause
// Operators that compute 16-bit floats in float32, as CUDA accumulates them,
// where the CPU kernels take more than twice as long as for float32.
#include "base/mechanism.h"
#include "device/settings.h"
#include "facts/wider_dtypes.h"
#include "kernel/wider.h"

namespace openreg::aten {

OPENREG_MECHANISM_LAST(
    half_in_float32,
    "torch::Library::def of openreg::float32_*",
    "float16 convolutions and matrix products take 5 to 50 times as long") {
  if (half_in_float32_setting()) {
    use_float32_kernels();
    add_float32_kernels(slow_operators());
  }
}

} // namespace openreg::aten
