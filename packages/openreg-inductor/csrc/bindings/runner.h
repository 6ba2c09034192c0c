// SPDX-License-Identifier: BSD-3-Clause
// Models that AOTInductor has compiled, for the Python module.
#pragma once

namespace openreg::inductor {

/// Registers the runner of models that AOTInductor has compiled, under the name
/// that the device has now.
void register_runner();

/// The same for operators that Inductor compiles in eager mode.
void register_eager_runner();

} // namespace openreg::inductor
