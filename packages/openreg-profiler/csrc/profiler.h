// SPDX-License-Identifier: BSD-3-Clause
// The device's profiler for Kineto.
#pragma once

namespace openreg::profiler {

/// Registers the profiler in PyTorch, once.
void register_profiler();

} // namespace openreg::profiler
