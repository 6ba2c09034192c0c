// SPDX-License-Identifier: BSD-3-Clause
// Operators with both a CPU kernel and a composite kernel.
//
// The dispatcher does not call the fallback for an operator with a composite
// kernel. The device would then compute it in other steps than the CPU, more
// slowly and with other rounding (layer_norm), or through its out= variant
// (every structured operator). The boxed kernel is therefore registered by name
// for each of them. This also keeps their derivatives: for an operator with a
// device kernel, autograd uses the formula of the operator itself, and not the
// formulas of its parts.
#pragma once

#include "base/keys.h"
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
/// for `cpu_key` and a composite kernel, but none for the device's key, the key
/// of the library.
// [docs: composite]
template <c10::DispatchKey cpu_key>
void register_over_composites(torch::Library& library) {
  const auto device_key = key_for(c10::toFunctionalityKey(cpu_key));
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
