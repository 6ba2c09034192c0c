// SPDX-License-Identifier: BSD-3-Clause
// Runners of AOTInductor models, for the Python module.
#pragma once

namespace openreg::inductor {

/// Registers the runner of AOTInductor models under the device's present name.
void register_runner();

/// Registers the runner of operators that Inductor compiles in eager mode.
void register_eager_runner();

} // namespace openreg::inductor
