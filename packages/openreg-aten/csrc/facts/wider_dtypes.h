// SPDX-License-Identifier: BSD-3-Clause
// Whether operators compute in a wider dtype than their tensors have:
// kernel/wider.h says how.
#pragma once

namespace openreg::aten {

/// Lets operators compute in a wider dtype where the CPU has no kernel: the
/// mechanism.
void use_wider_dtypes();
bool uses_wider_dtypes();

/// Lets operators compute in float32 where the CPU's kernel is slow: another
/// mechanism.
void use_float32_kernels();
bool uses_float32_kernels();

} // namespace openreg::aten
