// SPDX-License-Identifier: BSD-3-Clause
// What libopenreg_inductor shares with the Python module.
#pragma once

#include "launch/launch.h"

#include <ATen/core/Tensor.h>

#include <vector>

namespace openreg::inductor {

/// Checks argument `number` of `kernel`, counted among its tensors. Throws if
/// it is on another device, or does not lie in its storage.
C10_EXPORT void find_operand(
    const at::Tensor& tensor,
    int64_t device,
    const char* kernel,
    size_t number,
    Operand& operand);

/// A tensor among the arguments of a kernel that is about to be launched.
struct Observed {
  at::Tensor tensor;
  bool writes;
};
/// May throw, and the kernel is not launched then.
using Observe =
    void (*)(const Call& call, const std::vector<Observed>& operands);
/// Sets the one function that sees each launch, or none (null).
C10_EXPORT void set_observe(Observe observe);

using LaunchCompiled = void (*)(const Call& call);

/// Tells the library of openreg-aten's function, which is in a Python module.
C10_EXPORT void set_launch(LaunchCompiled launch);

/// Launches a kernel. Throws what it throws.
C10_EXPORT void launch(const Call& call);

} // namespace openreg::inductor
