// SPDX-License-Identifier: BSD-3-Clause
// Checks whether a dtype can represent a number.
#pragma once

#include <c10/core/Scalar.h>
#include <c10/core/ScalarType.h>

namespace openreg::aten {

/// Whether a dtype can represent a number. If not, the kernel raises an error.
bool can_represent(c10::ScalarType dtype, const c10::Scalar& value);

} // namespace openreg::aten
