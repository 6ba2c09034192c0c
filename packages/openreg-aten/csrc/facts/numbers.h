// SPDX-License-Identifier: BSD-3-Clause
// Which numbers a dtype has.
#pragma once

#include <c10/core/Scalar.h>
#include <c10/core/ScalarType.h>

namespace openreg::aten {

/// Whether a dtype has a number: a kernel refuses those that it has not.
bool has_number(c10::ScalarType dtype, const c10::Scalar& value);

} // namespace openreg::aten
