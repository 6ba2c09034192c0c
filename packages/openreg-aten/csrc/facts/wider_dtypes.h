// SPDX-License-Identifier: BSD-3-Clause
// Whether operators compute in a wider dtype than their tensors have:
// kernel/wider.h says how.
#pragma once

#include "base/export.h"
#include "facts/operators.h"

#include <cstdint>

namespace openreg::aten {

/// Lets operators compute in a wider dtype where the CPU has no kernel: the
/// mechanism.
void use_wider_dtypes();
bool uses_wider_dtypes();

/// Lets them do so where the CPU's kernel is slow, too. To be called before the
/// first operator.
OPENREG_ATEN_API void widen_slow_dtypes(bool enabled);

/// The dtypes that the CPU's kernel of an operator has, and that are widened:
/// one bit each.
uint64_t slow_dtypes(const OperatorFacts& facts);

} // namespace openreg::aten
