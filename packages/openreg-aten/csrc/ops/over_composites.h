// SPDX-License-Identifier: BSD-3-Clause
// Operators that have a CPU kernel and a composite one.
//
// The fallback is not asked for an operator that has a composite kernel: the
// device would compute it in other steps than the CPU, slower and with other
// rounding (layer_norm), or by way of its out= variant (every structured
// operator). So the boxed kernel is registered for each of them by name. This
// also keeps their derivatives: an operator with a kernel of its own for the
// device uses PyTorch's formula instead of that of the composite's parts.
#pragma once

#include "kernel/boxed.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

namespace openreg::aten {

inline bool has_composite_kernel(const c10::OperatorHandle& op) {
  return op.hasKernelForDispatchKey(
             c10::DispatchKey::CompositeExplicitAutogradNonFunctional) ||
      op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd) ||
      op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
}

/// Registers the boxed kernel for every operator of `aten` that has a kernel
/// for `cpu_key`, a composite one, and none for `device_key`, which is the
/// library's.
// [docs: composite]
template <c10::DispatchKey cpu_key, c10::DispatchKey device_key>
void register_over_composites(torch::Library& library) {
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const auto& name : dispatcher.getRegistrationsForDispatchKey(cpu_key)) {
    const auto op = dispatcher.findSchema(name);
    if (op && name.getNamespace() == "aten" && has_composite_kernel(*op) &&
        !op->hasKernelForDispatchKey(device_key)) {
      const std::string full_name = toString(name);
      library.impl(
          full_name.c_str(),
          torch::CppFunction::makeFromBoxedFunction<
              &run_cpu_kernel<cpu_key>>());
    }
  }
}
// [docs: end]

} // namespace openreg::aten
