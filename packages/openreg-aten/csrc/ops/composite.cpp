// SPDX-License-Identifier: BSD-3-Clause
// Operators that have a CPU kernel and a composite one.
//
// The global fallback is not asked for an operator that has a composite kernel:
// the device would compute it in other steps than the CPU, slower and with
// other rounding (layer_norm), or by way of its out= variant (every structured
// operator). So the boxed kernel is registered for each of them by name. This
// also keeps their derivatives: an operator with a kernel of its own for the
// device uses PyTorch's formula instead of that of the composite's parts.
#include "kernel/boxed.h"
#include "mechanism.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

namespace openreg::aten {
namespace {

bool has_composite_kernel(const c10::OperatorHandle& op) {
  return op.hasKernelForDispatchKey(
             c10::DispatchKey::CompositeExplicitAutogradNonFunctional) ||
      op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd) ||
      op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
}

} // namespace

// [docs: composite]
OPENREG_MECHANISM_LAST(
    composite,
    "TORCH_LIBRARY_IMPL(aten, PrivateUse1): over composite kernels") {
  static auto library = MAKE_TORCH_LIBRARY_IMPL(aten, PrivateUse1);
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const auto& name :
       dispatcher.getRegistrationsForDispatchKey(c10::DispatchKey::CPU)) {
    const auto op = dispatcher.findSchema(name);
    if (op && name.getNamespace() == "aten" && has_composite_kernel(*op) &&
        !op->hasKernelForDispatchKey(c10::DispatchKey::PrivateUse1)) {
      const std::string full_name = toString(name);
      library.impl(
          full_name.c_str(),
          torch::CppFunction::makeFromBoxedFunction<&run_cpu_kernel>());
    }
  }
}
// [docs: end]

} // namespace openreg::aten
