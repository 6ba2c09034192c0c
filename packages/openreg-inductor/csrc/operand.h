// SPDX-License-Identifier: BSD-3-Clause
// What libopenreg_inductor shares with the Python module.
#pragma once

#include "launch.h"

#include <ATen/core/Tensor.h>

namespace openreg::inductor {

/// Looks at a tensor. Throws if it is on another device.
C10_EXPORT Operand find_operand(const at::Tensor& tensor, int64_t device);

using LaunchCompiled = void (*)(const Call& call);

/// Tells the library of openreg-aten's function, which is in a Python module.
C10_EXPORT void set_launch(LaunchCompiled launch);

/// Launches a kernel. Throws what it throws.
C10_EXPORT void launch(const Call& call);

/// Registers the runner of models that AOTInductor has compiled, under the name
/// that the device has now.
C10_EXPORT void register_runner();

/// The same for operators that Inductor compiles in eager mode.
C10_EXPORT void register_eager_runner();

} // namespace openreg::inductor
