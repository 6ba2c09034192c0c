// SPDX-License-Identifier: BSD-3-Clause
// The CPU allocator while a kernel of the device runs.
#pragma once

#include <c10/core/Allocator.h>

namespace openreg::aten {

/// Allocates device memory, by its kernel pointer, inside a KernelScope, and
/// what the CPU's own allocator gives everywhere else.
c10::Allocator& kernel_cpu_allocator();

} // namespace openreg::aten
