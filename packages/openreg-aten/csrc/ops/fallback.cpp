// SPDX-License-Identifier: BSD-3-Clause
// The global fallback: every operator without a kernel of the device runs here.
#include "kernel/boxed.h"
#include "mechanism.h"

#include <torch/library.h>

namespace openreg::aten {
namespace {

// [docs: fallback]
void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  run_boxed(op, stack, op);
}
// [docs: end]

} // namespace

// [docs: fallback-registration]
OPENREG_MECHANISM(fallback, "TORCH_LIBRARY_IMPL(_, PrivateUse1): fallback") {
  static auto library = MAKE_TORCH_LIBRARY_IMPL(_, PrivateUse1);
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
}
// [docs: end]

} // namespace openreg::aten
