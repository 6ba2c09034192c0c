// SPDX-License-Identifier: BSD-3-Clause
// The profiler of the device, as Kineto asks for it.
#pragma once

namespace openreg::profiler {

/// Tells PyTorch of the profiler, once.
void register_profiler();

} // namespace openreg::profiler
