// SPDX-License-Identifier: BSD-3-Clause
// The global fallback: runs every operator without a device kernel.
#include "base/keys.h"
#include "base/mechanism.h"
#include "kernel/boxed.h"

#include <torch/library.h>

namespace openreg::aten {

// [docs: fallback-registration]
OPENREG_MECHANISM(
    fallback,
    "TORCH_LIBRARY_IMPL(_, PrivateUse1): fallback",
    "operators without a device kernel fail") {
  static auto library = OPENREG_LIBRARY_IMPL(_, kDenseKey);
  library.fallback(
      torch::CppFunction::makeFromBoxedFunction<&run_cpu_kernel<>>());
}
// [docs: end]

} // namespace openreg::aten
