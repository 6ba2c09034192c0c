// SPDX-License-Identifier: BSD-3-Clause
// Decides which operators compute in a wider dtype than their tensors have
// (kernel/wider.h).
#pragma once

namespace openreg::aten {

/// Enables a mechanism: operators compute in a wider dtype if the CPU has no
/// kernel.
void use_wider_dtypes();
bool uses_wider_dtypes();

/// Enables a mechanism: operators compute in float32 if the CPU kernel is slow.
void use_float32_kernels();
bool uses_float32_kernels();

} // namespace openreg::aten
