// SPDX-License-Identifier: BSD-3-Clause
// The functions of libopenreg_inductor for the Python module.
#pragma once

#include "launch/launch.h"

#include <ATen/core/Tensor.h>

#include <vector>

namespace openreg::inductor {

/// Checks the tensor argument `number` of `kernel`. Throws if it is on another
/// device or exceeds its storage.
C10_EXPORT void find_operand(
    const at::Tensor& tensor,
    int64_t device,
    const char* kernel,
    size_t number,
    Operand& operand);

/// A tensor argument of the next kernel launch.
struct Observed {
  at::Tensor tensor;
  bool writes;
};
/// If it throws, the kernel is not launched.
using Observe =
    void (*)(const Call& call, const std::vector<Observed>& operands);
/// Sets the function that observes each launch; null for none.
C10_EXPORT void set_observe(Observe observe);

using LaunchCompiled = void (*)(const Call& call);

/// Sets openreg-aten's launch function, which is in a Python module.
C10_EXPORT void set_launch(LaunchCompiled launch);

/// Launches a kernel. Throws the kernel's exceptions.
C10_EXPORT void launch(const Call& call);

} // namespace openreg::inductor
